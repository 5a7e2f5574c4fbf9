// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

namespace muster {

using Deadline = std::chrono::steady_clock::time_point;

// Now plus `timeout`, without overflow for "for ever" and not before now.
inline Deadline deadline_in(std::chrono::milliseconds timeout) {
  constexpr std::chrono::milliseconds kLongest = std::chrono::hours(24 * 365);
  return std::chrono::steady_clock::now() +
         std::clamp(timeout, std::chrono::milliseconds(0), kLongest);
}

}  // namespace muster
