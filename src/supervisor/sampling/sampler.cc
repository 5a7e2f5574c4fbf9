// SPDX-License-Identifier: Apache-2.0
#include "supervisor/sampling/sampler.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <utility>

#include "loop/pool.h"
#include "loop/unique_fd.h"
#include "supervisor/cli/environment.h"
#include "supervisor/sampling/page_news.h"
#include "supervisor/sampling/told_progress.h"
#include "supervisor/status/row_states.h"

namespace muster {

namespace {

// Of each stream, for its progress.
constexpr size_t kTailBytes = 1024;
// And of the stderr of a worker that shows no life.
constexpr size_t kTracebackBytes = 16'384;

int64_t unix_now_us() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

int64_t us_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration_cast<std::chrono::microseconds>(to - from).count();
}

uint64_t calls_of(const RankOperations& operations) {
  uint64_t calls = operations.communicators.size();
  for (const RankCommunicator& one : operations.communicators)
    calls += one.collectives + one.messages;
  return calls;
}

// More digits would be noise, and history is kept in digits.
double rounded(double number) {
  return std::round(number * 1e4) / 1e4;
}

}  // namespace

struct Sampler::Work {
  struct Output {
    std::string path;  // to be looked at: the worker writes it itself
    int64_t last_us = 0;
    size_t tail_bytes = kTailBytes;
    std::string tail;
  };
  struct Worker {
    int rank = 0;
    int local_rank = 0;
    int64_t started_us = 0;  // unix
    std::array<Output, 2> outputs;
    Progress progress;
    std::shared_ptr<const UniqueFd> page;
    PageNews news;
    std::shared_ptr<const UniqueFd> progress_file;
    ToldProgress told;
    // Of its life: what was seen before, and what is seen now.
    ProcUsage before;
    std::optional<LifeDetail> detail_before;
    char state_before = 0;
    Clock::time_point looked_before{};
    std::optional<LifeDetail> detail;
    Activity activity = Activity::kAlive;
    Waiting waiting;
    bool wants_traceback = false;
    std::string traceback;
  };
  std::string proc;
  int attempt = 0;
  int64_t time_us = 0;
  Clock::time_point looked{};
  std::vector<Worker> workers;
  std::vector<int> pids;  // theirs
  ProcLook look;

  // On a thread of the pool.
  void run() {
    look = look_at_processes(pids, proc);
    time_us = unix_now_us();
    looked = Clock::now();
    for (size_t at = 0; at < workers.size(); ++at) {
      Worker& worker = workers[at];
      look_at_life(at);
      for (Output& output : worker.outputs) {
        if (!output.path.empty()) read_file(output);
        if (!output.tail.empty()) worker.progress.update(progress_in(output.tail));
      }
      if (worker.page) worker.news = read_news(*worker.page);
      if (worker.progress_file) worker.told = read_told_progress(*worker.progress_file);
      if (worker.wants_traceback) worker.traceback = traceback_at_end(worker.outputs[1].tail);
    }
  }

  void look_at_life(size_t at) {
    Worker& worker = workers[at];
    if (worker.looked_before == Clock::time_point{}) return;
    const int64_t elapsed_us = us_between(worker.looked_before, looked);
    worker.activity = activity_by_use(worker.before, look.usage[at], elapsed_us);
    if (worker.activity == Activity::kAlive) return;
    worker.detail = life_detail(pids[at], look.members[at], proc);
    worker.activity =
        activity_in_detail(worker.activity, worker.detail_before, worker.detail, elapsed_us);
    if (worker.activity == Activity::kAlive) return;
    worker.waiting = how_it_waits(pids[at], look.members[at], proc);
    worker.activity = activity_by_state(worker.activity, worker.waiting.state, worker.state_before);
  }

  static void read_file(Output& output) {
    const UniqueFd fd(::open(output.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat info {};
    if (!fd || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0) return;
    output.last_us = int64_t{info.st_mtim.tv_sec} * 1'000'000 + info.st_mtim.tv_nsec / 1000;
    output.tail.resize(output.tail_bytes);
    const auto from = std::max<off_t>(0, info.st_size - static_cast<off_t>(output.tail_bytes));
    const ssize_t got = ::pread(fd.get(), output.tail.data(), output.tail.size(), from);
    output.tail.resize(static_cast<size_t>(std::max<ssize_t>(0, got)));
  }
};

Sampler::Sampler(Loop& loop, Parts parts)
    : loop_(loop), parts_(std::move(parts)), self_(std::make_shared<Sampler*>(this)) {}

Sampler::~Sampler() {
  *self_ = nullptr;
}

void Sampler::observe(const Event& event) {
  if (const auto* started = std::get_if<event::AttemptStarted>(&event.body)) {
    begin_attempt(started->attempt);
  } else if (std::holds_alternative<event::WorkerSpawned>(event.body)) {
    if (!timer_) arm(kFirst);
  } else if (std::holds_alternative<event::JobEnded>(event.body)) {
    timer_.reset();
  }
}

void Sampler::begin_attempt(int attempt) {
  attempt_ = attempt;
  measured_.clear();
}

void Sampler::arm(Milliseconds delay) {
  timer_ = Timer::start(loop_, delay, [this] {
    timer_.reset();
    if (plan_work()->pids.empty()) return;  // the next worker that starts arms it again
    arm(parts_.every);
    refresh();
  });
  timer_->unref();
}

void Sampler::refresh() {
  if (Clock::now() - last_look_ > fresh()) look();
}

std::vector<RankSample> Sampler::samples() {
  refresh();
  return last_samples();
}

std::vector<RankSample> Sampler::last_samples() const {
  std::vector<RankSample> samples;
  const AttemptState* attempt = parts_.state().current();
  if (attempt == nullptr || attempt->attempt != attempt_) return samples;
  const int64_t now_us = unix_now_us();
  const Clock::time_point now = Clock::now();
  for (const RankState& rank : attempt->ranks) {
    const auto found = measured_.find(rank.rank);
    if (found == measured_.end() || rank.phase != RankPhase::kRunning) continue;
    RankSample sample = found->second.sample;
    // Lines through us are known to the moment.
    for (Stream stream : {Stream::kStdout, Stream::kStderr}) {
      const Clock::time_point at = parts_.logs.recent(rank.local_rank, stream, 0).at;
      if (at == Clock::time_point()) continue;
      const auto age = std::chrono::duration_cast<std::chrono::microseconds>(now - at).count();
      sample.last_output_us = std::max(sample.last_output_us, now_us - age);
    }
    if (sample.last_output_us > sample.alive_us && sample.alive_us > 0) {
      sample.alive_us = sample.last_output_us;
      sample.spins = false;
    }
    samples.push_back(sample);
  }
  return samples;
}

std::shared_ptr<Sampler::Work> Sampler::plan_work() const {
  auto work = std::make_shared<Work>();
  const JobState& state = parts_.state();
  const AttemptState* attempt = state.current();
  if (attempt == nullptr || attempt->attempt != attempt_ || state.end) return work;
  work->proc = parts_.proc;
  work->attempt = attempt->attempt;
  for (const RankState& rank : attempt->ranks) {
    if (rank.node != attempt->node || rank.phase != RankPhase::kRunning) continue;
    Work::Worker worker;
    worker.rank = rank.rank;
    worker.local_rank = rank.local_rank;
    worker.started_us = unix_us(state, rank.started_us);
    if (parts_.page) worker.page = parts_.page(rank.local_rank);
    if (parts_.progress) worker.progress_file = parts_.progress(rank.local_rank);
    if (const auto found = measured_.find(rank.rank); found != measured_.end()) {
      const Measured& measured = found->second;
      worker.before = measured.usage;
      worker.detail_before = measured.detail;
      worker.state_before = measured.sample.state;
      worker.looked_before = measured.at;
      worker.wants_traceback = measured.life.quiet_us() > 0 &&
                               measured.sample.last_output_us != measured.traceback_of_us;
      if (worker.wants_traceback) worker.outputs[1].tail_bytes = kTracebackBytes;
    }
    work->pids.push_back(rank.pid);
    work->workers.push_back(std::move(worker));
  }
  return work;
}

void Sampler::look() {
  if (looking_) return;
  std::shared_ptr<Work> work = plan_work();
  if (work->pids.empty()) return;
  const int64_t now_us = unix_now_us();
  const Clock::time_point now = Clock::now();
  for (Work::Worker& worker : work->workers) {
    for (size_t i = 0; i < worker.outputs.size(); ++i) {
      const Stream stream = i == 0 ? Stream::kStdout : Stream::kStderr;
      Work::Output& output = worker.outputs[i];
      JobLogs::Recent recent = parts_.logs.recent(worker.local_rank, stream, output.tail_bytes);
      if (recent.at == Clock::time_point()) {
        output.path = parts_.logs.log_file(worker.local_rank, stream);
        continue;
      }
      output.last_us =
          now_us - std::chrono::duration_cast<std::chrono::microseconds>(now - recent.at).count();
      output.tail = std::move(recent.tail);
    }
  }
  looking_ = true;
  last_look_ = now;
  run_in_pool(
      loop_, [work] { work->run(); },
      [work, self = self_] {
        if (*self == nullptr) return;
        (*self)->looking_ = false;
        (*self)->take(*work);
      });
}

std::optional<std::string> Sampler::visible_devices(int local_rank) const {
  const auto at = static_cast<size_t>(local_rank);
  if (at >= parts_.plan.workers.size()) return std::nullopt;
  auto visible = lookup(parts_.plan.workers[at].environment, "CUDA_VISIBLE_DEVICES");
  return visible ? visible : lookup(parts_.plan.inherited, "CUDA_VISIBLE_DEVICES");
}

std::optional<GpuReading> Sampler::gpu_of(int local_rank) {
  const std::vector<GpuReading> readings = gpus_.look();
  if (readings.empty()) return std::nullopt;
  const int device = device_for(readings, local_rank, visible_devices(local_rank));
  if (device < 0) return std::nullopt;
  return readings[static_cast<size_t>(device)];
}

void Sampler::take(const Work& work) {
  if (work.attempt != attempt_) return;
  const std::vector<GpuReading> readings = gpus_.look();
  std::vector<int> device_of;
  for (const Work::Worker& worker : work.workers) {
    device_of.push_back(readings.empty() ? -1
                                         : device_for(readings, worker.local_rank,
                                                      visible_devices(worker.local_rank)));
  }
  const std::vector<GpuShare> shares = share_gpus(readings, work.look.root_of, device_of);
  for (size_t at = 0; at < work.workers.size(); ++at)
    take_one(work, at, shares[at]);
  if (on_look_) on_look_();
}

void Sampler::take_one(const Work& work, size_t at, const GpuShare& gpu) {
  const Work::Worker& worker = work.workers[at];
  const ProcUsage& usage = work.look.usage[at];
  Measured& measured = measured_[worker.rank];
  RankSample& sample = measured.sample;
  // The first time it is the mean since the worker's start.
  const bool first = sample.time_us == 0;
  const ProcUsage none{true, usage.start_time, 0, 0};
  sample.rank = worker.rank;
  sample.cpu = rounded(cores_between(first ? none : measured.usage, usage,
                                     work.time_us - (first ? worker.started_us : sample.time_us)));
  sample.rss_bytes = usage.found ? usage.rss_bytes : -1;
  sample.time_us = work.time_us;
  sample.gpu = gpu.utilization;
  sample.gpu_memory_bytes = gpu.memory_used;
  take_life(work, at, measured);
  measured.usage = usage;
  measured.at = work.looked;
  // What it reports wins over what its lines seem to say.
  const Progress& told = worker.news.progress.any()   ? worker.news.progress
                         : worker.told.progress.any() ? worker.told.progress
                                                      : worker.progress;
  if (told.any()) measured.progress.note(told, work.time_us);
  sample.heartbeat_us =
      worker.news.heartbeat_age_us < 0 ? 0 : work.time_us - worker.news.heartbeat_age_us;
  sample.values = worker.news.values;
  sample.operations = worker.news.operations;
  const Progress& progress = measured.progress.now();
  sample.step = progress.step;
  sample.steps = progress.steps;
  sample.steps_per_s = rounded(progress.steps_per_s);
  sample.loss = progress.loss;
}

// Before what is known of it is replaced by the new look.
void Sampler::take_life(const Work& work, size_t at, Measured& measured) {
  const Work::Worker& worker = work.workers[at];
  RankSample& sample = measured.sample;
  const int64_t elapsed_us =
      measured.at == Clock::time_point{} ? 0 : us_between(measured.at, work.looked);
  Activity activity = worker.activity;
  const bool disturbed = elapsed_us > 0 && parts_.disturbed && parts_.disturbed(measured.at);
  if (disturbed && activity == Activity::kAlive) activity = Activity::kBetween;
  for (const Work::Output& output : worker.outputs) {
    if (output.last_us > sample.last_output_us) activity = Activity::kAlive;
    sample.last_output_us = std::max(sample.last_output_us, output.last_us);
  }
  const PageNews& news = worker.news;
  // Another time, if only because the clock was set back.
  if (worker.told.time_us != 0 && worker.told.time_us != measured.told_us) {
    activity = Activity::kAlive;
    measured.told_us = worker.told.time_us;
  }
  const bool beaten = news.heartbeat_age_us >= 0 && news.heartbeat_age_us < elapsed_us;
  const uint64_t calls = news.operations ? calls_of(*news.operations) : 0;
  if (beaten || calls != measured.calls || sample.gpu > 0) activity = Activity::kAlive;
  measured.calls = calls;
  measured.detail = worker.detail;
  // A look that came far too late saw a time in which nobody could do anything.
  const int64_t most_us = 2 * std::chrono::microseconds(parts_.every).count();
  measured.life.saw(activity, elapsed_us, most_us);
  sample.alive_us = work.time_us - measured.life.quiet_us();
  sample.spins = measured.life.spins();
  sample.state = worker.waiting.state;
  sample.wait_channel = worker.waiting.channel;
  if (activity == Activity::kAlive) {
    sample.traceback.clear();
    measured.traceback_of_us = 0;
  } else if (worker.wants_traceback) {
    sample.traceback = worker.traceback;
    measured.traceback_of_us = sample.last_output_us;
  }
}

}  // namespace muster
