// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "loop/fd_watch.h"
#include "loop/loop.h"
#include "loop/timer.h"
#include "supervisor/job/recorder.h"
#include "supervisor/stacks/probe.h"
#include "supervisor/workers/own_child.h"
#include "supervisor/workers/proc_fs.h"

namespace muster {

// Saves what can be seen of this node's running workers from outside, without a signal to them:
// where each of their threads is, in the kernel and in their own code. A file for each rank goes to
// attempt_<n>/stacks_<k>/ in the run's folder, and ranks that do the same are told together in an
// EvidenceSaved. Owned by the supervisor's main.
class EvidenceSaver {
 public:
  struct Parts {
    Loop& loop;
    Recorder& recorder;
    std::string run_dir;  // "" without logs: then only the groups are told
    std::string host;
    // Where a rank's flight recorder would write its dump, "" if that is nowhere.
    std::function<std::string(const RankState&)> recording = nullptr;
    std::string proc = kProc;
  };

  // All of it takes no longer; what is not there by then is said to be missing.
  static constexpr Milliseconds kPatience{20'000};
  // Of one attempt. Whoever asks again gets told so.
  static constexpr int kMaxSaves = 32;
  // Most that is taken of what the probe tells.
  static constexpr size_t kMaxAnswer = 1024 * 1024;

  explicit EvidenceSaver(Parts parts);
  ~EvidenceSaver();
  EvidenceSaver(const EvidenceSaver&) = delete;
  EvidenceSaver& operator=(const EvidenceSaver&) = delete;

  // Begins, and records an EvidenceSaved when it is done, if only with its trouble, unless the job
  // is over by then. Who asks while one is on its way shares its result.
  void save(const std::string& why);

  // For the recorder's observers: when the workers are told to stop there is nothing left to see.
  void observe(const Event& event);

  bool busy() const { return stage_ != Stage::kIdle; }
  // Whether workers were looked at, or asked for what they have, at any time after `since`.
  bool looked_since(Clock::time_point since) const { return busy() || ended_ > since; }

 private:
  // kStarting: from the call to the loop's next turn. kCut: it ends in the loop's next turn with
  // what is there.
  enum class Stage { kIdle, kStarting, kLooking, kCut };
  enum class Pipe { kEmpty, kEnded, kTooFull };

  std::vector<ProbeTarget> targets() const;
  void start(const std::vector<ProbeTarget>& targets);
  void on_output();
  Pipe read_output();
  void take_lines();
  void end_child();
  void finish(const std::string& trouble);
  void later(void (*task)(EvidenceSaver&));

  Parts parts_;
  event::EvidenceSaved saved_;  // that is on its way
  Stage stage_ = Stage::kIdle;
  Clock::time_point ended_{};  // of the last look
  std::optional<OwnChild> child_;
  Owned<FdWatch> watch_;  // goes before the child with the descriptor
  Owned<Timer> patience_;
  std::string unread_;
  size_t taken_ = 0;
  ProbeAnswer answer_;
  size_t asked_ranks_ = 0;
  int attempt_ = -1;
  int saves_ = 0;  // of that attempt
  std::shared_ptr<EvidenceSaver*> self_;
};

}  // namespace muster
