// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace muster {

// The parts of a tar file (POSIX ustar; pax records where that is too small). Pure.

// What stands before a file's bytes.
std::string tar_header(std::string_view name, int64_t size, int64_t unix_time);
// What stands behind them.
std::string tar_padding(int64_t size);
// What stands behind the last file.
std::string tar_end();

}  // namespace muster
