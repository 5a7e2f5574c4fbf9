// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "loop/http_message.h"

namespace muster {

// How an answer is put on the wire. Pure.
struct HttpAnswerHead {
  int status = 200;
  HttpHeaders headers;
  int64_t length = -1;  // -1: not known
  bool keeps_alive = true;
  bool http_1_0 = false;
  int64_t unix_time = 0;
};

// Status line and headers, with Date, Connection and what says the body's length.
std::string http_head_text(const HttpAnswerHead& head);

// Whether an answer of that status never has a body.
bool http_has_no_body(int status);

// "Not Found"; "" for a status nobody has named.
std::string_view http_reason(int status);

// The body of an answer about something that went wrong, as the API promises it (docs/api.md).
std::string http_error_body(int status, std::string_view message);

}  // namespace muster
