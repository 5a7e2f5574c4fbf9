// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "loop/unique_fd.h"
#include "supervisor/logs/times_format.h"

namespace muster {

// Writes the times of one log. Owned by its LogFile, used where that is: on the pool, one call at a
// time. It is a convenience for readers: what goes wrong with it is silent, and a file that cannot
// be kept right is emptied and given up, so that nobody is told a wrong place.
class TimesFile {
 public:
  // The file comes into being with the first note().
  explicit TimesFile(std::string path) : path_(std::move(path)) {}

  // The stream's bytes from `offset` on came at `time_us`. To be called before they are in the log.
  void note(int64_t offset, int64_t time_us);

  // The log lies in its file like this from now on. (started_us is filled in here.)
  void put_cut(LogCut cut);

  // The log was emptied by somebody and starts again.
  void restart();

 private:
  bool write(int64_t place, const std::string& bytes);
  void give_up();

  std::string path_;
  UniqueFd fd_;
  TimesEncoder encoder_;
  int64_t started_us_ = 0;
  bool given_up_ = false;
};

}  // namespace muster
