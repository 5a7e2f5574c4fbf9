// SPDX-License-Identifier: Apache-2.0
#include "supervisor/commands/terminal_text.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace muster {

namespace {

constexpr char kEscape = '\x1b';
constexpr char kBell = '\x07';

// The control sequence "ESC [ ... final" that `text` begins with: its length; without a final byte
// all of it that there is.
size_t control_sequence(std::string_view text) {
  size_t at = 2;
  while (at < text.size() && text[at] >= 0x20 && text[at] <= 0x3f)
    ++at;
  const bool final_byte = at < text.size() && text[at] >= 0x40 && text[at] <= 0x7e;
  return final_byte ? at + 1 : at;
}

// A string for the terminal, "ESC ] ... BEL" or "ESC P ... ESC \": its length. One that does not
// end takes the rest of the line, as a terminal would.
size_t string_sequence(std::string_view text) {
  for (size_t at = 2; at < text.size(); ++at) {
    if (text[at] == kBell) return at + 1;
    if (text[at] == kEscape) return std::min(at + 2, text.size());
  }
  return text.size();
}

size_t escape_sequence(std::string_view text) {
  if (text.size() < 2) return text.size();
  if (text[1] == '[') return control_sequence(text);
  if (std::string_view("]PX^_").find(text[1]) != std::string_view::npos) {
    return string_sequence(text);
  }
  size_t at = 1;
  while (at < text.size() && text[at] >= 0x20 && text[at] <= 0x2f)
    ++at;
  return std::min(at + 1, text.size());
}

bool is_colour(std::string_view sequence) {
  return sequence.size() > 2 && sequence[1] == '[' && sequence.back() == 'm' &&
         sequence.find_first_not_of("0123456789;:", 2) == sequence.size() - 1;
}

}  // namespace

std::string only_colours(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto c = static_cast<unsigned char>(text[0]);
    size_t length = 1;
    if (c == static_cast<unsigned char>(kEscape)) {
      length = escape_sequence(text);
      if (is_colour(text.substr(0, length))) out += text.substr(0, length);
    } else if (c == 0xC2 && text.size() > 1 && static_cast<unsigned char>(text[1]) < 0xA0) {
      length = 2;  // U+0080 to U+009F: the same in one character
    } else if ((c >= 0x20 && c != 0x7f) || c == '\t') {
      out += text[0];
    }
    text.remove_prefix(length);
  }
  return out;
}

bool wants_colour(int fd) {
  const char* off = std::getenv("NO_COLOR");
  if (off != nullptr && *off != '\0') return false;
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  return !dumb && ::isatty(fd) == 1;
}

}  // namespace muster
