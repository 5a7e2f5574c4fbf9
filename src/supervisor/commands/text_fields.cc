// SPDX-License-Identifier: Apache-2.0
#include "supervisor/commands/text_fields.h"

#include <algorithm>
#include <utility>

namespace muster {

namespace {

constexpr size_t kLabelWidth = 11;

const char* code_of(Paint paint) {
  switch (paint) {
    case Paint::kNone:
      return "";
    case Paint::kFaint:
      return "\033[2m";
    case Paint::kBold:
      return "\033[1m";
    case Paint::kGood:
      return "\033[1;32m";
    case Paint::kBusy:
      return "\033[1;33m";
    case Paint::kBad:
      break;
  }
  return "\033[1;31m";
}

// Characters, not bytes.
size_t width_of(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

}  // namespace

std::string TextFields::painted(std::string_view text, Paint paint) const {
  if (!colour_ || paint == Paint::kNone || text.empty()) return std::string(text);
  return code_of(paint) + std::string(text) + "\033[0m";
}

void TextFields::gap() {
  if (!lines_.empty() && !lines_.back().empty()) lines_.emplace_back();
}

void TextFields::field(std::string_view label, std::string_view text, Paint paint) {
  if (text.empty()) return;
  std::string name(label);
  name.resize(std::max(name.size() + 1, kLabelWidth), ' ');
  lines_.push_back(painted(name, Paint::kFaint) + painted(text, paint));
}

TextTable::TextTable(std::vector<std::string> heads) : heads_(std::move(heads)) {}

void TextTable::row(std::vector<std::string> cells, Paint paint) {
  cells.resize(heads_.size());
  rows_.push_back({std::move(cells), paint});
}

void TextTable::write(TextFields& to, std::string_view indent) const {
  std::vector<size_t> widths(heads_.size());
  for (size_t i = 0; i < heads_.size(); ++i) {
    for (const Row& row : rows_)
      widths[i] = std::max(widths[i], width_of(row.cells[i]));
    if (widths[i] > 0)
      widths[i] = std::max(widths[i], width_of(heads_[i]) - heads_[i].starts_with('>'));
  }
  auto line = [&](const std::vector<std::string>& cells) {
    std::string text(indent);
    for (size_t i = 0; i < cells.size(); ++i) {
      if (widths[i] == 0) continue;
      const bool right = heads_[i].starts_with('>');
      const std::string_view cell = std::string_view(cells[i]).substr(&cells == &heads_ && right);
      const std::string room(widths[i] - width_of(cell), ' ');
      text += right ? room : "";
      text += cell;
      text += right ? "  " : room + "  ";
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  };
  to.line(to.painted(line(heads_), Paint::kFaint));
  for (const Row& row : rows_)
    to.line(to.painted(line(row.cells), row.paint));
}

}  // namespace muster
