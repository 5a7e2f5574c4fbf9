// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "loop/loop.h"
#include "loop/result.h"
#include "loop/timer.h"
#include "supervisor/status/job_source.h"
#include "supervisor/status/sample_history.h"

namespace muster {

// A run as its folder shows it: finished, killed, or alive in another process. The state is rebuilt
// from events.jsonl, which is followed for as long as the run's muster lives. Owned by the command
// that shows it.
//
// A killed run has no end in its file: it is not live, its phase is kEnded without `end`, its
// last_us is its last sign of life, and a trouble of "muster" says so.
class RunSource : public JobSource {
 public:
  // How often a live run's file is looked at: over a network file system nobody tells.
  static constexpr Milliseconds kLookEvery{200};

  // Reads what there is; blocks, as a command may that has nothing else to do yet. The error says
  // what is wrong with the folder and what to do.
  static Result<std::unique_ptr<RunSource>> open(Loop& loop, const std::string& run_dir);
  ~RunSource() override;

  // Called from the loop when the run's muster is found to live no more, after the last event.
  void set_on_over(std::function<void()> on_over) { on_over_ = std::move(on_over); }

  // Of a run that ended in any way, or that lives.
  bool killed() const { return !live_ && !state_.end; }

  const JobState& state() const override { return state_; }
  int64_t next_seq() const override { return next_seq_; }
  std::vector<Event> recent_events() const override;
  void set_observer(std::function<void(const Event&)> observer) override;
  bool live() const override { return live_; }
  std::string run_dir() const override { return run_dir_; }
  const std::string& host() const override { return state_.job.host; }
  bool hosting() const override;
  std::vector<RankSample> samples() override;
  std::vector<StoreWaiter> store_waiters() const override { return {}; }
  std::optional<StoreCounters> store_counters() const override { return std::nullopt; }
  bool forward(int attempt, int node, std::unique_ptr<HttpExchange>& exchange) override;
  std::string stop(const std::string& who, bool kill) override;
  std::string restart(const std::string& who) override;
  std::string dump(const std::string& who, OnDumped done) override;

 private:
  struct File;   // what the looks share
  struct Place;  // where a look looks besides
  struct Found;  // what one look at the folder found

  RunSource(Loop& loop, std::string run_dir);
  Result<void> read_all();
  void look();
  void on_look(const Found& found);
  void take(const Found& found);
  void add(Event event);
  void add_trouble(std::string subject, std::string message);
  void add_file_troubles(const Found& found);
  void end_without_muster(const Found& found);
  std::string cannot_change(const char* what) const;

  Loop& loop_;
  std::string run_dir_;
  std::shared_ptr<File> file_;
  std::shared_ptr<RunSource*> self_;  // for looks that come back when we are gone
  JobState state_;
  int64_t next_seq_ = 0;
  std::deque<Event> recent_;
  HistoryRecord last_samples_;
  std::function<void(const Event&)> observer_;
  std::function<void()> on_over_;
  std::chrono::system_clock::time_point last_time_{};  // of the last event
  bool live_ = true;
  int64_t told_damaged_ = 0;
  int64_t told_unknown_ = 0;
  Owned<Timer> timer_;
};

}  // namespace muster
