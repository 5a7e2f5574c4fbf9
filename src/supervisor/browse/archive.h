// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "supervisor/browse/archive_work.h"
#include "supervisor/browse/browse_gate.h"

namespace muster {

// A part of an archive that is being packed. Owned by whoever sends it; dropping it ends it.
class LogArchive : public BrowseTask {
 public:
  struct State {
    bool done = false;
    std::vector<std::string> troubles;  // once it is done
  };
  // From the loop, after each piece of work; the last time with `done`. It may drop the archive, or
  // pause it: then nothing is packed until it goes on.
  using OnPacked = std::function<void(std::string packed, const State& state)>;

  // Logs that are not there are left out.
  static std::unique_ptr<LogArchive> start(BrowseGate& gate, std::vector<ArchiveEntry> entries,
                                           OnPacked on_packed);

  virtual void set_paused(bool paused) = 0;
};

}  // namespace muster
