// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

// What workers wrote, made fit to show: it may hold anything, and a report must neither drive the
// reader's terminal nor break its JSON.

// One line without its newline: escape sequences and control bytes gone, of a `\r` progress line
// only its last state, invalid UTF-8 replaced. Tabs stay.
std::string clean_line(std::string_view line);

// All lines of `text`, cleaned. A last line without newline counts.
std::vector<std::string> clean_lines(std::string_view text);

// The last `max` lines that remain after trailing blank ones are dropped.
std::vector<std::string> last_lines(const std::vector<std::string>& lines, size_t max);

// At most `max` characters, the last one "…" if something was cut. `line` is valid UTF-8.
std::string cut_line(std::string_view line, size_t max);

bool is_blank(std::string_view line);

// Replaces what is not UTF-8 by U+FFFD.
std::string valid_utf8(std::string_view bytes);

}  // namespace muster
