// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include "loop/loop.h"

namespace muster {

// Folds lines that several ranks print within a short time: `[0-7]: text` instead of eight lines.
// Every line comes out, alone or in a group, and the lines of one rank come out in their order.
// Pure: the owner brings the clock. Lines wait here until all ranks have said the same or kWindow
// is over.
class Fold {
 public:
  static constexpr Milliseconds kWindow{100};
  static constexpr size_t kHoldLimit = 1 << 20;  // bytes that may wait

  using Emit = std::function<void(const std::set<int>& ranks, std::string_view line)>;

  // `ranks` is how many ranks print to this console: a group of all of them need not wait.
  explicit Fold(size_t ranks) : all_(ranks) {}

  // `line` ends in '\n'.
  void add(int rank, std::string_view line, Clock::time_point now, const Emit& emit);

  // Gives out what has waited for kWindow.
  void advance(Clock::time_point now, const Emit& emit);

  // Gives out everything up to the last line of `rank`, because the rank has more to say that is
  // not a line; -1 gives out all.
  void flush(int rank, const Emit& emit);

  bool empty() const { return groups_.empty(); }
  Clock::time_point deadline() const { return groups_.front().since + kWindow; }

 private:
  struct Group {
    std::string line;
    std::set<int> ranks;
    Clock::time_point since;
  };

  void emit_front(const Emit& emit);

  size_t all_;
  std::deque<Group> groups_;
  uint64_t first_ = 0;  // number of groups_.front(); numbers are never reused
  size_t held_ = 0;
  std::unordered_map<std::string, uint64_t> newest_;  // number of the newest group of a text
  std::unordered_map<int, uint64_t> last_of_rank_;    // one past the newest group of a rank
};

}  // namespace muster
