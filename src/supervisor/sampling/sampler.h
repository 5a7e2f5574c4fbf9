// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "loop/loop.h"
#include "loop/timer.h"
#include "loop/unique_fd.h"
#include "supervisor/cli/plan.h"
#include "supervisor/job/state.h"
#include "supervisor/logs/job_logs.h"
#include "supervisor/sampling/gpu_watch.h"
#include "supervisor/sampling/life_look.h"
#include "supervisor/sampling/proc_usage.h"
#include "supervisor/sampling/progress_track.h"
#include "supervisor/status/rank_sample.h"

namespace muster {

// Measures this node's workers: processors and memory from /proc, GPUs, what they last wrote, how
// far they say they are, what their pages tell, and whether they do anything at all. Every ten
// seconds while workers run, oftener while somebody asks and where a short --hang-timeout wants it;
// nothing of it in the loop but taking and handing out. Owned by the supervisor's main.
class Sampler {
 public:
  struct Parts {
    std::function<const JobState&()> state;
    const JobLogs& logs;
    const LaunchPlan& plan;
    std::string proc = kProc;
    // A worker's page of shared memory; null: there is none. May be missing.
    std::function<std::shared_ptr<const UniqueFd>(int local_rank)> page{};
    Milliseconds every{10'000};
    // The file into which a worker may write its progress; likewise.
    std::function<std::shared_ptr<const UniqueFd>(int local_rank)> progress{};
    // Whether workers were asked for evidence after that time. What they do for it is no sign of
    // life. May be missing.
    std::function<bool(Clock::time_point since)> disturbed{};
  };
  static constexpr Milliseconds kFirst{1'500};  // after the first worker has started
  // Who asks gets what is there; if that is older than this, a new look begins.
  static constexpr Milliseconds kFresh{1'500};

  Sampler(Loop& loop, Parts parts);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  // For the recorder's observers.
  void observe(const Event& event);

  // Of this node's running workers in the current attempt, by rank. Asks for a new look if the last
  // one is not fresh.
  std::vector<RankSample> samples();
  // The same without asking for one.
  std::vector<RankSample> last_samples() const;
  void refresh();

  // The GPU that a worker uses by its local rank, as the last look found it; a new look begins.
  std::optional<GpuReading> gpu_of(int local_rank);

  // After each look; one at a time.
  void set_on_look(std::function<void()> on_look) { on_look_ = std::move(on_look); }

 private:
  struct Work;  // what the pool does
  struct Measured {
    RankSample sample;
    ProgressTrack progress;
    ProcUsage usage;
    Clock::time_point at{};  // of that
    std::optional<LifeDetail> detail;
    LifeTrack life;
    uint64_t calls = 0;           // operations that it has begun
    int64_t traceback_of_us = 0;  // when the output came whose traceback is known
    int64_t told_us = 0;          // when it wrote its progress, by that file's clock
  };

  void look();
  std::optional<std::string> visible_devices(int local_rank) const;
  std::shared_ptr<Work> plan_work() const;
  void take(const Work& work);
  void take_one(const Work& work, size_t at, const GpuShare& gpu);
  void take_life(const Work& work, size_t at, Measured& measured);
  Milliseconds fresh() const { return std::min(kFresh, parts_.every / 2); }
  void begin_attempt(int attempt);
  void arm(Milliseconds delay);

  Loop& loop_;
  Parts parts_;
  GpuWatch gpus_;
  std::unordered_map<int, Measured> measured_;  // by rank
  int attempt_ = -1;
  bool looking_ = false;
  Clock::time_point last_look_{};
  Owned<Timer> timer_;
  std::function<void()> on_look_;
  std::shared_ptr<Sampler*> self_;  // for looks that come back when we are gone
};

}  // namespace muster
