// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster {

// Where a pattern stands in a line, and the ranks it named.
struct TextMatch {
  std::string ranks;  // "3", "1,2", "0-2"; "" if the pattern has no '#'
};

// The language of the rules: plain text that a line contains. '*' stands for any text, '#' for one
// or more rank numbers ("3", "1, 2 and 5", "0-2"), '^' as the first character for the line's start.
// The work is at most the line's length times the pattern's.
std::optional<TextMatch> match_text(std::string_view pattern, std::string_view line);

}  // namespace muster
