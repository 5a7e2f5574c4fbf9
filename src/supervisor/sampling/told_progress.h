// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "loop/unique_fd.h"
#include "supervisor/browse/progress_line.h"

namespace muster {

// What a worker has written into the file that MUSTER_PROGRESS names: "812", "812/1000", a line as
// it would print it ("step 812 loss 0.5"), or JSON as in the store ({"step": 812}). Of several
// lines the last counts.
struct ToldProgress {
  int64_t time_us = 0;  // unix; when it was written last; 0: never
  Progress progress;
};

ToldProgress read_told_progress(const UniqueFd& file);

Progress parse_told_progress(std::string_view text);

}  // namespace muster
