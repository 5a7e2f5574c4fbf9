// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "loop/result.h"
#include "supervisor/browse/log_bytes.h"
#include "supervisor/browse/log_page.h"
#include "supervisor/browse/log_times.h"

namespace muster {

// The lines beside one, from an open log: on the pool. Lines so long that they are not found within
// 64 KiB are left out, and so are those before them.
struct LineContext {
  LogBytes& log;
  LogTimes& times;
  int64_t max_line;  // bytes of text

  // The last `count` lines before the one that begins at `offset` and has this number (or -1).
  Result<std::vector<LogLine>> before(int64_t offset, int64_t number, int count);
  // The first `count` lines from `offset` on, of which the first has this number.
  Result<std::vector<LogLine>> after(int64_t offset, int64_t number, int count);
};

}  // namespace muster
