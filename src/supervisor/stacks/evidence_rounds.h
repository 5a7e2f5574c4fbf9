// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "loop/loop.h"
#include "loop/timer.h"
#include "supervisor/job/event.h"
#include "supervisor/job/state.h"
#include "supervisor/stacks/evidence_saver.h"

namespace muster {

// Has all nodes that this record knows of save evidence, and says when all have, or when that takes
// too long. Owned by the supervisor's main.
class EvidenceRounds {
 public:
  struct Parts {
    Loop& loop;
    std::function<const JobState&()> state;
    // JobLink's.
    std::function<std::string(const std::string& why)> request;
  };
  using Done = std::function<void(const std::vector<event::EvidenceSaved>& saved)>;

  // A node's own patience, and the way there and back.
  static constexpr Milliseconds kPatience = EvidenceSaver::kPatience + Milliseconds(5'000);
  // At a time; more are refused.
  static constexpr size_t kMaxRounds = 64;

  explicit EvidenceRounds(Parts parts) : parts_(std::move(parts)) {}

  // The text says why there will be none, "" if `done` will be called.
  std::string begin(const std::string& why, Done done);

  // For the recorder's observers.
  void observe(const Event& event);

 private:
  struct Round {
    int attempt = 0;
    size_t awaited = 0;  // nodes that have not told yet
    std::vector<event::EvidenceSaved> saved;
    Done done;
    Owned<Timer> patience;
  };
  void finish(const std::shared_ptr<Round>& round);

  Parts parts_;
  std::vector<std::shared_ptr<Round>> rounds_;
};

}  // namespace muster
