// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace muster {

// "00:12:31"; hours grow beyond two digits.
std::string clock_text(int64_t microseconds);

// For lines in passing: "0.3 s", "12 s", "00:12:31".
std::string short_duration(int64_t microseconds);

// "2026-11-29T12:00:01.123Z", with `digits` (3 or 6) of the second.
std::string utc_text(std::chrono::system_clock::time_point time, int digits);

}  // namespace muster
