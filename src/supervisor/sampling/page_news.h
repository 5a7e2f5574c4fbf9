// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "loop/unique_fd.h"
#include "supervisor/browse/progress_line.h"
#include "supervisor/diagnosis/rank_operations.h"

namespace muster {

// What one look at a worker's page of shared memory tells.
struct PageNews {
  Progress progress;
  int64_t heartbeat_age_us = -1;  // negative: it has never reported
  std::vector<std::pair<std::string, double>> values;
  std::shared_ptr<const RankOperations> operations;  // null: no communicators
};

PageNews read_news(const UniqueFd& page);

}  // namespace muster
