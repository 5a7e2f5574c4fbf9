// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/hostlist.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>

namespace muster {
namespace {

constexpr size_t kMaxName = 255;
// Of a number in brackets: more than any host has, and far from overflow.
constexpr size_t kMaxDigits = 12;

using Names = std::vector<std::string>;

std::optional<uint64_t> number(std::string_view text) {
  const bool digits =
      std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  if (text.empty() || text.size() > kMaxDigits || !digits) return std::nullopt;
  uint64_t value = 0;
  for (char c : text)
    value = value * 10 + static_cast<uint64_t>(c - '0');
  return value;
}

std::string padded(uint64_t value, size_t width) {
  std::string digits = std::to_string(value);
  return digits.size() < width ? std::string(width - digits.size(), '0') + digits : digits;
}

Error too_many() {
  return Error{0, "more than " + std::to_string(kMaxHosts) + " hosts"};
}

// "1-4" or "7" of a bracket, appended to `out`.
Result<void> expand_range(std::string_view part, Names& out) {
  const size_t dash = part.find('-');
  const std::string_view first = part.substr(0, dash);
  const std::string_view last = dash == std::string_view::npos ? first : part.substr(dash + 1);
  const std::optional<uint64_t> low = number(first);
  const std::optional<uint64_t> high = number(last);
  if (!low || !high) return Error{0, "'" + std::string(part) + "' is no number and no range"};
  if (*low > *high) return Error{0, "'" + std::string(part) + "' runs backwards"};
  if (*high - *low >= kMaxHosts - std::min(out.size(), kMaxHosts)) return too_many();
  for (uint64_t value = *low; value <= *high; ++value)
    out.push_back(padded(value, first.size()));
  return {};
}

// The inside of a bracket: "1-4,7".
Result<Names> expand_bracket(std::string_view inside) {
  Names numbers;
  for (size_t at = 0;;) {
    const size_t comma = inside.find(',', at);
    if (Result<void> done = expand_range(inside.substr(at, comma - at), numbers); !done) {
      return done.error();
    }
    if (comma == std::string_view::npos) return numbers;
    at = comma + 1;
  }
}

// Every name of `names` with every ending of `endings`.
Result<Names> combine(const Names& names, const Names& endings) {
  if (endings.size() > kMaxHosts / std::max<size_t>(names.size(), 1)) return too_many();
  Names out;
  out.reserve(names.size() * endings.size());
  for (const std::string& name : names) {
    for (const std::string& ending : endings) {
      if (name.size() + ending.size() > kMaxName) return Error{0, "a name is too long"};
      out.push_back(name + ending);
    }
  }
  return out;
}

bool is_name_text(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_';
  });
}

// One element of the list, which has no comma outside of brackets.
Result<Names> expand_element(std::string_view element) {
  if (element.empty()) return Error{0, "a name is empty"};
  Names names = {""};
  while (!element.empty()) {
    const size_t open = element.find('[');
    const std::string_view plain = element.substr(0, open);
    if (!is_name_text(plain)) return Error{0, "'" + std::string(plain) + "' is no host name"};
    Result<Names> grown = combine(names, {std::string(plain)});
    if (grown && open != std::string_view::npos) {
      const size_t close = element.find(']', open);
      if (close == std::string_view::npos) return Error{0, "a bracket is not closed"};
      Result<Names> numbers = expand_bracket(element.substr(open + 1, close - open - 1));
      if (!numbers) return numbers.error();
      grown = combine(*grown, *numbers);
      element.remove_prefix(close + 1);
    } else {
      element = {};
    }
    if (!grown) return grown.error();
    names = std::move(*grown);
  }
  return names;
}

// Where the element that begins at `at` ends: at a comma outside of brackets.
size_t end_of_element(std::string_view text, size_t at) {
  bool inside = false;
  for (; at < text.size(); ++at) {
    if (text[at] == '[') inside = true;
    if (text[at] == ']') inside = false;
    if (text[at] == ',' && !inside) break;
  }
  return at;
}

}  // namespace

Result<Names> expand_hostlist(std::string_view text) {
  Names hosts;
  for (size_t at = 0;;) {
    const size_t end = end_of_element(text, at);
    Result<Names> names = expand_element(text.substr(at, end - at));
    if (!names) return names.error();
    if (names->size() > kMaxHosts - hosts.size()) return too_many();
    hosts.insert(hosts.end(), std::make_move_iterator(names->begin()),
                 std::make_move_iterator(names->end()));
    if (end >= text.size()) return hosts;
    at = end + 1;
  }
}

}  // namespace muster
