// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "loop/loop.h"
#include "loop/result.h"
#include "loop/unique_fd.h"

namespace muster {

// Has PyTorch's flight recorder (job/recording.h) of running ranks write its dumps, waits until
// they are whole, and puts them into one folder, where PyTorch's own tool looks for those of a job.
// A rank without the recorder's pipe is not asked. Blocks: for the probe.
class Recordings {
 public:
  // PyTorch looks into its pipe once a second, then has to write.
  static constexpr Milliseconds kPatience{5'000};

  // `dump` is where the rank's would write.
  void ask(int rank, const std::string& dump);

  // Those that were whole `patience` after the last was asked are in `folder` now, and keep their
  // names. The others' ranks.
  std::vector<int> collect(const std::string& folder, Milliseconds patience = kPatience);

 private:
  struct Dump {
    int rank = 0;
    std::string path;
    std::string name;  // in its folder
    bool whole = false;
  };

  void take_news();
  bool all_whole() const;

  UniqueFd watcher_;
  std::multimap<int, Dump> dumps_;  // by the watch on their folder
  Clock::time_point asked_{};
};

}  // namespace muster
