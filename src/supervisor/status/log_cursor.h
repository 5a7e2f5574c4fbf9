// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

// How far a reader of several logs of one attempt has come, as text that stands in a header or an
// address: "<attempt>-<offset>.<offset>. ..", in base 36 and in the order of the logs, with nothing
// for a log of which nothing was told yet. Pure.
struct LogCursor {
  int attempt = 0;
  std::vector<std::optional<int64_t>> offsets;
};

std::string encode_cursor(const LogCursor& cursor);
std::optional<LogCursor> decode_cursor(std::string_view text);

}  // namespace muster
