// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "loop/result.h"

namespace muster {

// Where the HTTP server listens.
struct HttpPlace {
  bool on = true;
  std::string address = "127.0.0.1";  // a literal
  int port = 0;                       // 0: any free one
  bool asked = false;                 // by the user: if it cannot be had, that is an error
};

// "off", "HOST:PORT", "HOST", "PORT" or ":PORT" (all addresses). HOST is a literal address,
// localhost, or * for all addresses; names are not looked up.
Result<HttpPlace> parse_http_place(std::string_view text);

}  // namespace muster
