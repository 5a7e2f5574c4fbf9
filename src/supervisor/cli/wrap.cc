// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/wrap.h"

#include <sstream>

namespace muster {

namespace {

constexpr size_t kWidth = 80;
constexpr size_t kIndent = 6;

}  // namespace

std::string wrapped(std::string_view text) {
  std::istringstream words{std::string(text)};
  std::string out;
  std::string line(kIndent, ' ');
  bool empty = true;
  for (std::string word; words >> word;) {
    if (!empty && line.size() + 1 + word.size() > kWidth) {
      out += line + "\n";
      line.assign(kIndent, ' ');
      empty = true;
    }
    if (!empty) line += ' ';
    line += word;
    empty = false;
  }
  return out + line + "\n";
}

std::string option_heading(char short_name, std::string_view name, std::string_view value_name) {
  std::string out;
  if (short_name != 0) out = std::string("-") + short_name + ", ";
  out += "--" + std::string(name);
  if (!value_name.empty()) out += " " + std::string(value_name);
  return out;
}

std::string table_cell(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace muster
