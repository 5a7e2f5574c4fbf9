// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster {

// A line prefix made from a template with the rules of Python's string.Template.safe_substitute:
// $name and ${name} are replaced, $$ is one $, and what is unknown or malformed stays as it is.
// All names but ${time} have their value when the prefix is made.
class Prefix {
 public:
  using Values = std::map<std::string, std::string, std::less<>>;

  Prefix() = default;
  Prefix(std::string_view pattern, const Values& values);

  // The text for a line shown at `now` (local time, ISO 8601 with milliseconds). The view lives
  // until the next call.
  std::string_view text(std::chrono::system_clock::time_point now);

  bool empty() const { return text_.empty() && times_.empty(); }
  bool has_time() const { return !times_.empty(); }

 private:
  std::string text_;           // ${time} filled in
  std::vector<size_t> times_;  // where ${time} stands in text_, each kTimeLength long
  int64_t shown_ms_ = -1;
};

}  // namespace muster
