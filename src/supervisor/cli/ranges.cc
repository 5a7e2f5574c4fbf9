// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/ranges.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace muster {

namespace {

constexpr std::string_view kMore = "...";

// Takes a number off the front of the text.
bool take_number(std::string_view& text, int& number) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

}  // namespace

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

std::vector<int> parse_ranges(std::string_view text, size_t most) {
  std::vector<int> numbers;
  int from = 0;
  while (numbers.size() < most && take_number(text, from)) {
    int to = from;
    if (text.starts_with("-")) {
      text.remove_prefix(1);
      if (!take_number(text, to)) break;
    }
    for (int64_t number = from; number <= to && numbers.size() < most; ++number)
      numbers.push_back(static_cast<int>(number));
    if (!text.starts_with(",")) break;
    text.remove_prefix(text.starts_with(", ") ? 2 : 1);
  }
  return numbers;
}

std::string cut_ranges(std::string_view ranges, size_t most) {
  if (ranges.size() <= most) return std::string(ranges);
  const size_t room = most - std::min(most, kMore.size());
  const size_t comma = ranges.substr(0, room).rfind(',');
  return std::string(ranges.substr(0, comma + 1)) + std::string(kMore);  // npos + 1 is 0
}

}  // namespace muster
