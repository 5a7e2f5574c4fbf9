// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/log_cursor.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

namespace muster {

namespace {

constexpr int kBase = 36;
constexpr size_t kMaxText = size_t{16} << 10;

std::optional<int64_t> number_in(std::string_view text, int base) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

}  // namespace

std::string encode_cursor(const LogCursor& cursor) {
  std::string text = std::to_string(cursor.attempt);
  char separator = '-';
  for (const std::optional<int64_t>& offset : cursor.offsets) {
    text += std::exchange(separator, '.');
    if (!offset) continue;
    char digits[16];
    const auto [end, error] = std::to_chars(digits, digits + sizeof(digits), *offset, kBase);
    text.append(digits, end);
  }
  return text;
}

std::optional<LogCursor> decode_cursor(std::string_view text) {
  if (text.size() > kMaxText) return std::nullopt;
  LogCursor cursor;
  const size_t dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto attempt = number_in(text.substr(0, dash), 10);
  if (!attempt || *attempt > std::numeric_limits<int>::max()) return std::nullopt;
  cursor.attempt = static_cast<int>(*attempt);
  while (!text.empty()) {
    text.remove_prefix(cursor.offsets.empty() ? dash + 1 : 1);
    const std::string_view part = text.substr(0, text.find('.'));
    text.remove_prefix(part.size());
    const auto offset = number_in(part, kBase);
    if (!offset && !part.empty()) return std::nullopt;
    cursor.offsets.push_back(offset);
  }
  return cursor;
}

}  // namespace muster
