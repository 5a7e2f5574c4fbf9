// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loop/result.h"

namespace muster {

// How option values are read: text to typed value, with a message that says what was expected.
// Pure; the caller adds which option and which text.

// As Python's int(): blanks around, a sign, single underscores between digits.
std::optional<int64_t> parse_int(std::string_view text);

// As Python's float() for finite numbers.
std::optional<double> parse_double(std::string_view text);

// "90", "0.5": seconds from 0 to a year.
std::optional<std::chrono::milliseconds> parse_seconds(std::string_view text);

// 1, true, t, yes, y, on and 0, false, f, no, n, off in any case; other whole numbers by being
// zero or not.
std::optional<bool> parse_bool(std::string_view text);

// "512M", "1GiB", "0": bytes, with K, M, G or T as powers of 1024.
std::optional<int64_t> parse_size(std::string_view text);

struct NodeCount {
  int min = 1;
  int max = 1;
};
// "N" or "MIN:MAX".
Result<NodeCount> parse_nnodes(std::string_view text);

// "2,4,7", "0-3", GPU and MIG UUIDs; each device once.
Result<std::vector<std::string>> parse_gpus(std::string_view text);

// Needles separated by ','; ",," stands for one comma. The empty text is one empty needle, which
// every line contains.
std::vector<std::string> parse_needles(std::string_view text);

// "SIGTERM", "TERM"; nothing for an unknown name.
std::optional<int> signal_number(std::string_view name);

std::string_view trim(std::string_view text);
std::vector<std::string> split(std::string_view text, char separator);
std::string join(const std::vector<std::string>& parts, std::string_view separator);

}  // namespace muster
