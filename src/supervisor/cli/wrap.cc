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

}  // namespace muster
