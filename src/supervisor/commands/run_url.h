// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "loop/result.h"

namespace muster {

// The address of a run, as it prints it or as somebody shortened it.
struct RunUrl {
  std::string host;
  int port = 80;
  std::string token;  // "" if it has none
};

// Whether `text` is meant as an address and not as a folder: "http://...", "node-a:34521".
bool looks_like_url(std::string_view text);

// "http://node-a:34521/?token=...", with or without scheme and token; what is behind the host does
// not matter (somebody copied the address of a page).
Result<RunUrl> parse_run_url(std::string_view text);

// `text` as a value in a query.
std::string url_encoded(std::string_view text);

}  // namespace muster
