// SPDX-License-Identifier: Apache-2.0
#include "supervisor/browse/line_context.h"

#include <algorithm>
#include <string>

namespace muster {

namespace {

// Most lines are short.
constexpr int64_t kWindows[] = {2 << 10, 64 << 10};

}  // namespace

Result<std::vector<LogLine>> LineContext::before(int64_t offset, int64_t number, int count) {
  std::vector<LogLine> lines;
  const int64_t hole_end = log.layout().hole_end();
  const int64_t begin = offset >= hole_end ? hole_end : 0;
  for (const int64_t window : kWindows) {
    lines.clear();
    const int64_t from = std::max(begin, offset - window);
    if (count == 0 || from >= offset) break;
    auto piece = log.read(from, offset - from);
    if (!piece) return piece.error();
    if (piece->offset != from) break;  // cut out meanwhile
    std::string_view rest = piece->bytes;
    while (!rest.empty() && std::ssize(lines) < count) {
      // `rest` ends with the newline of the line that is wanted.
      const size_t newline = rest.size() < 2 ? rest.npos : rest.rfind('\n', rest.size() - 2);
      if (newline == rest.npos && from > begin) break;
      const size_t start = newline == rest.npos ? 0 : newline + 1;
      const std::string_view text = rest.substr(start, rest.size() - start - 1);
      LogLine line;
      line.offset = from + static_cast<int64_t>(start);
      line.number = number < 0 ? -1 : number - std::ssize(lines) - 1;
      line.size = std::ssize(text);
      line.text = text.substr(0, static_cast<size_t>(max_line));
      lines.push_back(std::move(line));
      rest = rest.substr(0, start);
    }
    if (std::ssize(lines) == count || from == begin) break;
  }
  std::reverse(lines.begin(), lines.end());
  for (LogLine& line : lines)
    line.time_us = times.time_of(line.offset);
  return lines;
}

Result<std::vector<LogLine>> LineContext::after(int64_t offset, int64_t number, int count) {
  std::vector<LogLine> lines;
  for (const int64_t window : kWindows) {
    lines.clear();
    if (count == 0 || offset >= log.size()) break;
    auto piece = log.read(offset, window);
    if (!piece) return piece.error();
    if (piece->offset != offset) break;  // the hole follows
    const bool to_the_end = offset + std::ssize(piece->bytes) >= log.size();
    std::string_view rest = piece->bytes;
    int64_t at = offset;
    while (!rest.empty() && std::ssize(lines) < count) {
      const size_t newline = rest.find('\n');
      if (newline == rest.npos && !to_the_end) break;
      const std::string_view text = rest.substr(0, newline);
      LogLine line;
      line.offset = at;
      line.number = number < 0 ? -1 : number + std::ssize(lines);
      line.size = std::ssize(text);
      line.text = text.substr(0, static_cast<size_t>(max_line));
      line.ended = newline != rest.npos;
      lines.push_back(std::move(line));
      const size_t used = newline == rest.npos ? rest.size() : newline + 1;
      rest.remove_prefix(used);
      at += static_cast<int64_t>(used);
    }
    if (std::ssize(lines) == count || to_the_end) break;
  }
  for (LogLine& line : lines)
    line.time_us = times.time_of(line.offset);
  return lines;
}

}  // namespace muster
