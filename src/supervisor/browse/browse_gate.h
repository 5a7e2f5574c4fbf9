// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "loop/loop.h"

namespace muster {

// Work that goes on in the pool. Dropping it cancels it; silent from there.
class BrowseTask {
 public:
  virtual ~BrowseTask() = default;
};

// One of those who want the gate's thread.
class BrowseJob : public BrowseTask {
 public:
  // Runs one more piece when it is this job's turn. Once more after it if it is called while a
  // piece runs; more often is not remembered.
  virtual void wake() = 0;
};

// All reading, counting and searching of logs goes through here: one thread of the pool at a time,
// whatever many clients want, so that writing logs always finds the others free. Jobs take turns,
// piece by piece; a piece should take some milliseconds (about kPiece bytes). Owned by the
// LogReader; jobs may outlive it, silent.
class BrowseGate {
 public:
  static constexpr int64_t kPiece = int64_t{4} << 20;

  enum class Urgency {
    kAsked,  // somebody waits for it
    kIdle,   // runs when nobody else wants to
  };

  explicit BrowseGate(Loop& loop);
  ~BrowseGate();

  // `piece` runs on the pool, then `after` in the loop; `after` may drop the job or wake it.
  // Neither runs before the first wake(). `piece` must own what it touches: a job that is dropped
  // while its piece runs is not waited for. Both functions go when the job does, or with the piece
  // that runs.
  std::unique_ptr<BrowseJob> add(std::function<void()> piece, std::function<void()> after,
                                 Urgency urgency = Urgency::kAsked);

  // Pieces run so far, for tests.
  int64_t pieces() const;

 private:
  struct Impl;
  class JobHandle;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster
