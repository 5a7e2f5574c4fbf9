// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

enum class Paint { kNone, kFaint, kBold, kGood, kBusy, kBad };

// Lines of labelled text: "  hint       text", labels in one column. What is shown has been
// cleaned by whoever adds it.
class TextFields {
 public:
  explicit TextFields(bool colour) : colour_(colour) {}

  std::string painted(std::string_view text, Paint paint) const;

  void line(std::string text) { lines_.push_back(std::move(text)); }
  void gap();
  // Nothing if `text` is empty. An empty label goes on with the field before.
  void field(std::string_view label, std::string_view text, Paint paint = Paint::kNone);

  std::vector<std::string> take() { return std::move(lines_); }

 private:
  bool colour_;
  std::vector<std::string> lines_;
};

// Rows of cells, each column as wide as its widest cell; empty columns are left out.
class TextTable {
 public:
  // With a '>' in front its cells stand at the right.
  explicit TextTable(std::vector<std::string> heads);
  void row(std::vector<std::string> cells, Paint paint = Paint::kNone);
  void write(TextFields& to, std::string_view indent) const;
  bool empty() const { return rows_.empty(); }

 private:
  struct Row {
    std::vector<std::string> cells;
    Paint paint = Paint::kNone;
  };
  std::vector<std::string> heads_;
  std::vector<Row> rows_;
};

}  // namespace muster
