// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace muster {

// How long ago ("90", "90s", "15m", "2h", "3d") or a local time: "12:30" or "12:30:05" of today (of
// yesterday if that is still to come), "2026-11-29", "2026-11-29T12:00" or "2026-11-29 12:00:05",
// UTC with a Z at its end. Unix microseconds.
std::optional<int64_t> parse_since(std::string_view text,
                                   std::chrono::system_clock::time_point now);

}  // namespace muster
