// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "supervisor/browse/browse_gate.h"
#include "supervisor/browse/search_work.h"

namespace muster {

// A search that is under way. Owned by whoever shows what it finds; dropping it cancels it.
class LogSearch : public BrowseTask {
 public:
  struct State {
    int64_t hits = 0;
    int64_t bytes = 0;
    int64_t total_bytes = 0;
    bool done = false;
    bool truncated = false;
    std::vector<std::string> troubles;  // once it is done
  };
  // After each piece, from the loop; the last time with `done`. It may drop the search, or pause
  // it: then nothing is read, and nothing told, until it goes on.
  using OnFound = std::function<void(std::vector<SearchHit> hits, const State& state)>;

  static std::unique_ptr<LogSearch> start(BrowseGate& gate, SearchWork::Settings settings,
                                          OnFound on_found);

  virtual void set_paused(bool paused) = 0;
};

}  // namespace muster
