// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace muster {

// A message of an event stream ("text/event-stream"). Pure.
struct SseMessage {
  std::string_view event;  // "": none, which a browser calls "message"
  std::string_view id;     // "": none; comes back in Last-Event-ID
  std::string_view data;   // any text; a receiver sees its line ends as '\n'
};
std::string sse_text(const SseMessage& message);

// What a receiver ignores: keeps a quiet stream's connection from being taken for dead.
std::string sse_comment(std::string_view text);

// How long a browser waits before it connects again.
std::string sse_retry(int milliseconds);

}  // namespace muster
