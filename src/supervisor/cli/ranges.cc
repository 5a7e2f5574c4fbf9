// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/ranges.h"

#include <algorithm>

namespace muster {

std::string format_ranges(std::vector<int> numbers, std::string_view separator) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1)
      ++last;
    if (!text.empty()) text += separator;
    text += std::to_string(numbers[i]);
    if (last > i) text += "-" + std::to_string(numbers[last]);
    i = last + 1;
  }
  return text;
}

std::string cut_ranges(std::string_view ranges, size_t most) {
  constexpr std::string_view kMore = "...";
  if (ranges.size() <= most) return std::string(ranges);
  const size_t room = most - std::min(most, kMore.size());
  const size_t comma = ranges.substr(0, room).rfind(',');
  return std::string(ranges.substr(0, comma + 1)) + std::string(kMore);  // npos + 1 is 0
}

}  // namespace muster
