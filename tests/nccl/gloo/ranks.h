// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nccl/core/backend.h"

namespace muster::comm::detail {

// What a rank's function in a test has. It runs in a process of its own.
struct RankPlace {
  int rank = 0;
  int size = 1;
  int store_port = 0;
  std::vector<int> pids{};  // of the ranks before it

  // A connection to the test's store, under a prefix.
  std::shared_ptr<muster::Store> store(const std::string& prefix = "test") const;
  BackendPlan plan(std::chrono::milliseconds timeout = std::chrono::seconds(20),
                   const std::string& prefix = "test") const;
  // Throws ErrorException.
  std::unique_ptr<CommBackend> backend(std::chrono::milliseconds timeout = std::chrono::seconds(20),
                                       const std::string& prefix = "test") const;
  // Returns when each rank but those that never come has called it with this name.
  void meet(const std::string& name, int others_missing = 0) const;
};

// Starts `size` processes, each of which calls the function, and a store in one more. Each function
// that throws or leaks is a failed check with its text. A rank that is killed is none if it is
// among `may_die`. Children that take longer than `limit` are killed: a failed check too.
void run_ranks(int size, const std::function<void(const RankPlace&)>& function,
               const std::vector<int>& may_die = {},
               std::chrono::seconds limit = std::chrono::seconds(50));

// For those functions, where doctest's checks would be lost: throws with the text.
void expect(bool good, const std::string& text);

Deadline in(std::chrono::milliseconds time);

}  // namespace muster::comm::detail
