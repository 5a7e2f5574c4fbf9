// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace muster {

// "30 ms", "12.3 s", and from a minute on "00:12:31"; hours grow beyond two digits.
std::string duration_text(int64_t microseconds);

// "2026-11-29T12:00:01.123Z", with `digits` (3 or 6) of the second.
std::string utc_text(std::chrono::system_clock::time_point time, int digits);

}  // namespace muster
