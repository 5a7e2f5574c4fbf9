// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/text_lines.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace muster {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr std::string_view kEllipsis = "\xE2\x80\xA6";

bool is_continuation(unsigned char byte) {
  return (byte & 0xC0) == 0x80;
}

// Length of the valid UTF-8 sequence at the start of `bytes`, 0 if there is none: no overlong
// forms, no surrogates, nothing above U+10FFFF.
size_t sequence_length(std::string_view bytes) {
  auto at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  unsigned char first = at(0);
  if (first < 0x80) return 1;
  size_t length = first >= 0xC2 && first <= 0xDF   ? 2
                  : first >= 0xE0 && first <= 0xEF ? 3
                  : first >= 0xF0 && first <= 0xF4 ? 4
                                                   : 0;
  if (length == 0 || bytes.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if (!is_continuation(at(i))) return 0;
  }
  if (first == 0xE0 && at(1) < 0xA0) return 0;
  if (first == 0xED && at(1) > 0x9F) return 0;
  if (first == 0xF0 && at(1) < 0x90) return 0;
  if (first == 0xF4 && at(1) > 0x8F) return 0;
  return length;
}

// Where the escape sequence that starts at `at` ends: CSI up to its final byte, OSC up to BEL or
// ST, otherwise two bytes.
size_t skip_escape(std::string_view text, size_t at) {
  size_t i = at + 1;
  if (i >= text.size()) return i;
  if (text[i] == '[') {
    for (++i; i < text.size(); ++i) {
      if (text[i] >= 0x40 && text[i] <= 0x7E) return i + 1;
    }
    return i;
  }
  if (text[i] == ']') {
    for (++i; i < text.size(); ++i) {
      if (text[i] == '\a') return i + 1;
      if (text[i] == '\x1b') return std::min(i + 2, text.size());
    }
    return i;
  }
  return i + 1;
}

}  // namespace

std::string valid_utf8(std::string_view bytes) {
  std::string result;
  result.reserve(bytes.size());
  while (!bytes.empty()) {
    size_t length = sequence_length(bytes);
    if (length == 0) {
      result += kReplacement;
      bytes.remove_prefix(1);
    } else {
      result += bytes.substr(0, length);
      bytes.remove_prefix(length);
    }
  }
  return result;
}

std::string clean_line(std::string_view line) {
  while (!line.empty() && line.back() == '\r')
    line.remove_suffix(1);
  if (size_t at = line.rfind('\r'); at != std::string_view::npos) line.remove_prefix(at + 1);
  std::string kept;
  kept.reserve(line.size());
  for (size_t i = 0; i < line.size();) {
    auto byte = static_cast<unsigned char>(line[i]);
    if (byte == 0x1B) {
      i = skip_escape(line, i);
      continue;
    }
    if (byte == '\t' || (byte >= 0x20 && byte != 0x7F)) kept += line[i];
    ++i;
  }
  std::string text = valid_utf8(kept);
  // C1 controls (U+0080 to U+009F) drive some terminals like escapes do.
  for (size_t i = 0; i + 1 < text.size();) {
    bool c1 = text[i] == '\xC2' && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (c1) {
      text.erase(i, 2);
    } else {
      ++i;
    }
  }
  return text;
}

std::vector<std::string> clean_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    size_t end = text.find('\n');
    lines.push_back(clean_line(text.substr(0, end)));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t") == std::string_view::npos;
}

std::vector<std::string> last_lines(const std::vector<std::string>& lines, size_t max) {
  size_t end = lines.size();
  while (end > 0 && is_blank(lines[end - 1]))
    --end;
  size_t begin = end > max ? end - max : 0;
  while (begin < end && is_blank(lines[begin]))
    ++begin;
  return {lines.begin() + static_cast<std::ptrdiff_t>(begin),
          lines.begin() + static_cast<std::ptrdiff_t>(end)};
}

std::string cut_line(std::string_view line, size_t max) {
  size_t characters = 0;
  size_t keep = 0;  // bytes of the first max - 1 characters
  for (size_t i = 0; i < line.size(); ++i) {
    if (is_continuation(static_cast<unsigned char>(line[i]))) continue;
    if (++characters == max) keep = i;
    if (characters > max) return std::string(line.substr(0, keep)) + std::string(kEllipsis);
  }
  return std::string(line);
}

}  // namespace muster
