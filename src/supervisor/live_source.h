// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "supervisor/cli/plan.h"
#include "supervisor/job/job.h"
#include "supervisor/job/recorder.h"
#include "supervisor/logs/job_logs.h"
#include "supervisor/rendezvous/rendezvous.h"
#include "supervisor/sampling/reported_progress.h"
#include "supervisor/sampling/sample_keeper.h"
#include "supervisor/sampling/sampler.h"
#include "supervisor/stacks/evidence_rounds.h"
#include "supervisor/status/job_source.h"

namespace muster {

// The job that runs here, for the HTTP API. Owned by the supervisor's main, which also owns what it
// points to and lets it go first.
class LiveSource final : public JobSource {
 public:
  struct Parts {
    Recorder& recorder;
    const LaunchPlan& plan;
    std::string run_dir;
    const JobLogs& logs;
    Rendezvous& link;
    Job& job;
    EvidenceRounds& evidence;
    const EvidenceSaver& saver;
  };
  LiveSource(Loop& loop, Parts parts);

  // What was measured of this node's workers alone, for the coordinator elsewhere.
  std::vector<RankSample> own_samples();
  // What was measured of other nodes' workers, where the coordinator is here.
  void take_samples(int attempt, const std::vector<RankSample>& samples);

  // Of all ranks, without asking for fresher ones; and asks all nodes for such.
  std::vector<RankSample> known_samples();
  void look_again();
  // The GPU of one of this node's workers, for the evidence of its death.
  std::optional<GpuReading> gpu_of(int local_rank) { return sampler_.gpu_of(local_rank); }

  // For the recorder: keeps the newest events and passes them on.
  void observe(const Event& event);

  const JobState& state() const override { return parts_.recorder.state(); }
  int64_t next_seq() const override { return next_seq_; }
  std::vector<Event> recent_events() const override { return {recent_.begin(), recent_.end()}; }
  void set_observer(std::function<void(const Event&)> observer) override;

  bool live() const override { return true; }
  std::string run_dir() const override { return parts_.run_dir; }
  const std::string& host() const override { return parts_.plan.host; }
  bool hosting() const override { return parts_.link.hosting(); }

  std::vector<RankSample> samples() override;
  std::vector<StoreWaiter> store_waiters() const override;
  std::optional<StoreCounters> store_counters() const override;

  bool forward(int attempt, int node, std::unique_ptr<HttpExchange>& exchange) override;
  std::string stop(const std::string& who, bool kill) override;
  std::string restart(const std::string& who) override;
  std::string dump(const std::string& who, OnDumped done) override;

 private:
  Parts parts_;
  std::deque<Event> recent_;
  int sampled_attempt_ = -1;                         // of what follows
  std::unordered_map<int, RankSample> from_others_;  // by rank
  int64_t next_seq_ = 0;
  std::function<void(const Event&)> observer_;
  Sampler sampler_;
  ReportedProgress reported_;
  std::optional<SampleKeeper> keeper_;  // none without a run folder
};

}  // namespace muster
