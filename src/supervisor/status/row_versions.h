// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/job/event.h"
#include "supervisor/job/state.h"

namespace muster {

// Which rows of docs/api.md an event may change. Pure.
struct TouchedRows {
  bool job = false;
  bool all_nodes = false;
  std::string node_id;         // "" for none
  int attempt = -1;            // of which the rest speaks; -1 for none
  bool attempt_row = false;    // and that of the attempt before it
  bool all_ranks = false;      // its own
  bool unended_ranks = false;  // its own and those of the attempt before it, as far as they run
  int rank = -1;
};
TouchedRows touched_rows(const EventBody& body, const JobState& state);

// When each row last changed, as the number of events that had happened then. This is all that the
// event stream remembers: whoever was told up to `since` is sent the rows that are newer, so a
// client that was cut off and one that reads slowly are the same case, and none needs a queue.
class RowVersions {
 public:
  // Everything is as new as `version`.
  void reset(const JobState& state, int64_t version);

  // `state` has the event already.
  void note(const JobState& state, const EventBody& body, int64_t version);

  // Places in JobState::nodes and JobState::attempts, and there in AttemptState::ranks.
  struct Changes {
    bool job = false;
    bool all_nodes = false;
    std::vector<size_t> nodes;  // besides
    std::vector<size_t> attempts;
    std::vector<std::pair<size_t, size_t>> ranks;
  };
  Changes since(int64_t version) const;

 private:
  struct Attempt {
    int64_t row = 0;
    int64_t newest_rank = 0;
    std::vector<int64_t> ranks;
  };

  void grow(const JobState& state, int64_t version);
  void touch_attempt(const JobState& state, const TouchedRows& touched, int64_t version);
  void touch_rank(size_t attempt, size_t rank, int64_t version);
  void touch_unended(const JobState& state, size_t attempt, int64_t version);

  Phase phase_ = Phase::kStarting;
  int64_t job_ = 0;
  int64_t all_nodes_ = 0;
  std::vector<int64_t> nodes_;
  std::vector<Attempt> attempts_;
};

}  // namespace muster
