// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace muster {

// Appends `bytes` to `text` with U+FFFD for what is not UTF-8, and returns how many UTF-16 units a
// browser counts for what was appended. Pure.
int64_t append_utf16_counted(std::string& text, std::string_view bytes);

}  // namespace muster
