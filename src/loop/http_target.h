// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster {

// What a request's target says. Pure.
struct HttpTarget {
  std::string path;  // decoded; "*" of OPTIONS
  std::vector<std::pair<std::string, std::string>> query;
  std::string authority;  // of an absolute target ("http://host:80/path"), else ""
};

// Nothing if the target is malformed or would mean different things to different readers: a
// fragment, a bad percent sign, "." or ".." as a part of the path, bytes that are not UTF-8 or are
// control characters in the path, NUL anywhere. `options` allows "*".
std::optional<HttpTarget> parse_target(std::string_view target, bool options);

// "%41+b" -> "A b" (`plus_is_space`) or "A+b"; nothing for a bad percent sign.
std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space);

// The opposite: letters, digits and "-_.~" as they are, the rest as "%20".
std::string percent_encode(std::string_view text);

// Whether `text` is what may stand for a host and a port in a Host header.
bool is_authority(std::string_view text);

bool is_utf8(std::string_view text);

}  // namespace muster
