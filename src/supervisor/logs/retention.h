// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster {

// Every run's folder has this file, locked (flock) for as long as its muster lives. Folders without
// it are not ours and are never touched.
inline constexpr char kRunLockFile[] = ".muster-run";

struct RunEntry {
  std::string name;
  int64_t started_ns = 0;
  bool live = false;
};

// The runs whose folders are in `base`, in no order. Blocks.
std::vector<RunEntry> list_runs(const std::string& base);

// The names of the runs to remove, oldest first, so that `keep` runs are left. Live runs count but
// are never removed.
std::vector<std::string> runs_to_remove(std::vector<RunEntry> runs, int keep);

// Removes the oldest runs in `base`. Blocks: belongs on the pool. What cannot be removed is left
// for the next time.
void prune_runs(const std::string& base, int keep);

// Makes `<base>/latest` a link to `name`, in one step for whoever looks. Failure is no trouble.
void point_latest(const std::string& base, const std::string& name);

}  // namespace muster
