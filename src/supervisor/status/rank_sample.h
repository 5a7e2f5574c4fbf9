// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/diagnosis/rank_operations.h"

namespace muster {

// What is measured of a worker now and then, not recorded as an event. It also travels from other
// nodes to the coordinator's (rendezvous/sample_codec.h).
struct RankSample {
  int rank = 0;
  int64_t time_us = 0;         // unix; when it was taken
  double cpu = -1;             // cores in use since the sample before, its descendants included
  int64_t rss_bytes = -1;      // its own and its descendants'
  int64_t last_output_us = 0;  // unix; 0: none yet
  double gpu = -1;             // 0..1
  int64_t gpu_memory_bytes = -1;
  // Parsed from its last lines ("step 812/1000", "loss 0.93"), or reported by it.
  int64_t step = -1;
  int64_t steps = -1;  // how many there will be
  double steps_per_s = -1;
  std::optional<double> loss;
  // From its page of shared memory (nccl/report/worker_page.h).
  int64_t heartbeat_us = 0;                              // unix; 0: never
  std::vector<std::pair<std::string, double>> values{};  // numbers with names of its own
  std::shared_ptr<const RankOperations> operations{};    // null: it uses no communicators
  // Signs of life (supervisor/hang), of the worker with its descendants.
  int64_t alive_us = 0;        // unix; the last time that it did anything; 0: unknown
  bool spins = false;          // since then it used a core and did nothing else
  char state = 0;              // of its main thread: 'R', 'S', 'D', 'T', ...; 0: unknown
  std::string wait_channel{};  // where that thread waits in the kernel, "" if unknown
  // How its stderr ends, if that is a Python traceback, while it shows no life: one line.
  std::string traceback{};
};

}  // namespace muster
