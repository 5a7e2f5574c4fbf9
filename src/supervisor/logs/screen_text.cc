// SPDX-License-Identifier: Apache-2.0
#include "supervisor/logs/screen_text.h"

#include <algorithm>

namespace muster {

namespace {

constexpr char kEscape = '\x1b';

// How long the control sequence is that `text` begins with: "ESC [", parameters, a final byte. 0 if
// it begins with something else or its end is missing.
size_t control_sequence(std::string_view text) {
  if (text.size() < 3 || text[0] != kEscape || text[1] != '[') return 0;
  for (size_t i = 2; i < text.size(); ++i) {
    unsigned char c = static_cast<unsigned char>(text[i]);
    if (c >= 0x40 && c <= 0x7e) return i + 1;
    if (c < 0x20 || c > 0x3f) return 0;
  }
  return 0;
}

// Final bytes of sequences that stay in their line.
bool stays_in_line(char final_byte) {
  constexpr std::string_view kHarmless = "mKCDGPX@";
  return kHarmless.find(final_byte) != std::string_view::npos;
}

// Two-byte sequences: save and restore the cursor, index, next line, reverse index, reset.
bool moves_cursor(char after_escape) {
  constexpr std::string_view kMoves = "78DEMc";
  return kMoves.find(after_escape) != std::string_view::npos;
}

}  // namespace

std::string_view clip_to_columns(std::string_view text, int columns) {
  int used = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (size_t length = control_sequence(text.substr(i)); length > 0) {
      i += length - 1;
      continue;
    }
    if ((static_cast<unsigned char>(text[i]) & 0xC0) == 0x80) continue;  // of the character before
    if (used == columns) return text.substr(0, i);
    ++used;
  }
  return text;
}

std::string without_cursor_moves(std::string_view text) {
  std::string kept;
  while (!text.empty()) {
    size_t escape = std::min(text.find(kEscape), text.size());
    kept += text.substr(0, escape);
    text.remove_prefix(escape);
    if (text.empty()) break;
    if (size_t length = control_sequence(text); length > 0) {
      if (stays_in_line(text[length - 1])) kept += text.substr(0, length);
      text.remove_prefix(length);
    } else if (text.size() > 1 && moves_cursor(text[1])) {
      text.remove_prefix(2);
    } else {
      kept += kEscape;
      text.remove_prefix(1);
    }
  }
  return kept;
}

}  // namespace muster
