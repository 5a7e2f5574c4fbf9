// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "loop/http_message.h"

namespace muster {

// What is asked of another node's muster: always a GET.
struct RemoteQuestion {
  std::string target;   // "/api/v1/logs/0/9/stdout?tail=20": printable ASCII, see make_target()
  HttpHeaders headers;  // those that may travel, see may_travel()
};

// A request to another node's muster, over the control connection. Owned by whoever asked; dropping
// it cancels. The answer's pieces are bounded: the node sends at most kRequestWindow bytes that
// were not consumed(), so one that reads slowly costs nobody else anything.
class RemoteRequest {
 public:
  // All from the loop, never from inside a call of this object; it may be dropped in them. A head
  // comes first; on_end or on_broken comes last.
  struct Callbacks {
    // `length` of the whole body, -1: not known.
    std::function<void(int status, HttpHeaders headers, int64_t length)> on_head;
    std::function<void(std::string_view bytes)> on_piece;
    std::function<void()> on_end;
    // The answer is not whole: the node is gone, or it gave up. Without a head before it nothing
    // was answered; `status` is then what to tell a client (502, 503, 504).
    std::function<void(int status, const std::string& why)> on_broken;
  };
  virtual ~RemoteRequest() = default;

  // That many bytes of pieces have gone on: as many more may come.
  virtual void consumed(size_t bytes) = 0;
};

// Bytes of one answer that may be under way.
inline constexpr size_t kRequestWindow = size_t{128} << 10;

}  // namespace muster
