// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/commands/log_lines.h"

namespace muster {

// Turns lines of logs into what `muster logs` prints. Pure.
class LinePrinter {
 public:
  struct Settings {
    bool json = false;
    bool prefix = true;  // "[3]: ", as on the console
    bool timestamps = false;
    bool colour = false;
    bool terminal = false;  // sequences that would move its cursor are left out
  };
  explicit LinePrinter(Settings settings) : settings_(settings) {}

  void set_prefix(bool on) { settings_.prefix = on; }

  // With a newline at its end. `matches` are shown in colour.
  std::string text(const ShownLine& line,
                   const std::vector<std::pair<size_t, size_t>>& matches = {}) const;

  // A line around a match, as grep marks it.
  std::string context(const ShownLine& line) const;

  // Between matches that do not follow each other.
  std::string separator() const;

 private:
  std::string prefix(const ShownLine& line, char mark) const;
  std::string shown_text(const ShownLine& line) const;

  Settings settings_;
};

// The last state of a line that was redrawn with carriage returns.
std::string_view last_state(std::string_view line);

}  // namespace muster
