// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loop/result.h"

namespace muster {

// A stream of a worker in one attempt.
struct LogName {
  int attempt = 0;
  int rank = 0;
  std::string stream;  // "stdout", "stderr"

  bool operator==(const LogName&) const = default;
};

// One line as the API gives it.
struct ShownLine {
  LogName log;
  int64_t offset = 0;
  int64_t number = -1;
  int64_t time_us = 0;  // 0: not known
  int64_t size = 0;     // of the whole line, whatever `text` has of it
  bool ended = true;    // false: it has no newline
  std::string text;
};

// A Page of docs/api.md.
struct ShownPage {
  LogName log;
  bool exists = false;
  int64_t end = 0;
  int64_t size = 0;
  std::optional<std::pair<int64_t, int64_t>> hole;
  std::vector<ShownLine> lines;

  bool reaches_end() const { return end >= size; }
};
Result<ShownPage> parse_page(std::string_view json);

// A line of a search's answer (docs/api.md).
struct SearchHit {
  ShownLine line;
  std::vector<ShownLine> before;
  std::vector<ShownLine> after;
  std::vector<std::pair<size_t, size_t>> matches;  // bytes of line.text
};
struct SearchAnswer {
  std::optional<SearchHit> hit;
  bool done = false;
  bool truncated = false;
  std::string error;               // the search broke off
  std::vector<std::string> notes;  // what could not be searched
};
Result<SearchAnswer> parse_search_answer(std::string_view json);

// Where the UTF-16 unit `unit` of `text` (UTF-8) begins, as a byte.
size_t byte_of_utf16(std::string_view text, size_t unit);

}  // namespace muster
