// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/json_out.h"

#include <array>
#include <charconv>
#include <cmath>

#include "loop/check.h"
#include "supervisor/diagnosis/text_lines.h"

namespace muster {

namespace {

// Plain bytes of a JSON string are copied in runs. What is not plain is ASCII to be escaped; of the
// other bytes only a look at the whole text can tell.
enum class Byte : uint8_t { kPlain, kEscape, kHigh };

constexpr std::array<Byte, 256> kBytes = [] {
  std::array<Byte, 256> bytes{};
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = i >= 0x80 ? Byte::kHigh : i < 0x20 || i == 0x7F ? Byte::kEscape : Byte::kPlain;
  }
  bytes['"'] = bytes['\\'] = Byte::kEscape;
  return bytes;
}();

Byte kind_of(char c) {
  return kBytes[static_cast<unsigned char>(c)];
}

bool all_ascii(std::string_view text) {
  for (char c : text) {
    if (kind_of(c) == Byte::kHigh) return false;
  }
  return true;
}

void append_escape(std::string& to, char c) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  switch (c) {
    case '"':
      to += "\\\"";
      return;
    case '\\':
      to += "\\\\";
      return;
    case '\n':
      to += "\\n";
      return;
    case '\r':
      to += "\\r";
      return;
    case '\t':
      to += "\\t";
      return;
    default:
      break;
  }
  to += "\\u00";
  to += kDigits[byte >> 4];
  to += kDigits[byte & 15];
}

// `text` is UTF-8. C1 controls (U+0080 to U+009F) drive some terminals, so curl shall not show
// them.
void append_escaped(std::string& to, std::string_view text) {
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool c1 = text[i] == '\xC2' && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (!c1 && kind_of(text[i]) != Byte::kEscape) continue;
    to += text.substr(begin, i - begin);
    if (c1) ++i;
    append_escape(to, text[i]);
    begin = i + 1;
  }
  to += text.substr(begin);
}

}  // namespace

void JsonOut::new_line() {
  to_ += '\n';
  to_.append(2 * depth_, ' ');
}

void JsonOut::before() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (depth_ == 0) return;
  Level& level = levels_[depth_ - 1];
  if (level.filled) to_ += ',';
  if (layout_ == Layout::kLines) {
    if (!level.row) {
      new_line();
    } else if (level.filled) {
      to_ += ' ';
    }
  }
  level.filled = true;
}

void JsonOut::open(char bracket, bool row) {
  before();
  MUST(depth_ < kMaxDepth);
  const bool inside_row = depth_ > 0 && levels_[depth_ - 1].row;
  levels_[depth_++] = {false, row || inside_row};
  to_ += bracket;
}

void JsonOut::close(char bracket) {
  MUST(depth_ > 0 && !after_key_);
  const Level level = levels_[--depth_];
  if (level.filled && !level.row && layout_ == Layout::kLines) new_line();
  to_ += bracket;
}

void JsonOut::key(std::string_view name) {
  MUST(!after_key_);
  before();
  to_ += '"';
  to_ += name;
  to_ += layout_ == Layout::kLines ? "\": " : "\":";
  after_key_ = true;
}

void JsonOut::put(std::string_view json) {
  before();
  to_ += json;
}

void JsonOut::value(std::string_view text) {
  before();
  to_ += '"';
  if (all_ascii(text)) {
    append_escaped(to_, text);
  } else {
    append_escaped(to_, valid_utf8(text));
  }
  to_ += '"';
}

void JsonOut::integer(int64_t number) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, number);
  put({digits, static_cast<size_t>(end.ptr - digits)});
}

void JsonOut::value(double number) {
  if (!std::isfinite(number)) return null();
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof digits, number);
  put({digits, static_cast<size_t>(end.ptr - digits)});
}

}  // namespace muster
