// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// What a server answered. Header names are in lower case.
struct HttpResponse {
  int status = 0;
  HttpHeaders headers;
  std::string body;

  // The first header of that (lower-case) name, "" if there is none.
  std::string_view header(std::string_view name) const {
    for (const auto& [key, value] : headers)
      if (key == name) return value;
    return {};
  }
};

// How much of a response is kept in memory at most.
struct HttpLimits {
  size_t max_head = size_t{64} << 10;  // status line, headers and trailers, 1xx answers too
  size_t max_body = size_t{4} << 20;   // bytes that have not been taken yet
};

}  // namespace muster
