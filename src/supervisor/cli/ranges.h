// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

// {3, 0, 1, 2, 8} -> "0-3,8": how CPU lists and lists of ranks are written.
std::string format_ranges(std::vector<int> numbers, std::string_view separator = ",");

// What format_ranges() wrote, at most `most` numbers of it in its order. Ends at what is no such
// list, such as the "..." of cut_ranges().
std::vector<int> parse_ranges(std::string_view text, size_t most);

// At most `most` characters of such a list: what is too long is cut behind a comma and ends in
// "...", so that no number is another one.
std::string cut_ranges(std::string_view ranges, size_t most);

}  // namespace muster
