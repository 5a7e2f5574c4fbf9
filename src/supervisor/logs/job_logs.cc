// SPDX-License-Identifier: Apache-2.0
#include "supervisor/logs/job_logs.h"

#include <signal.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <vector>

#include "loop/pool.h"
#include "supervisor/logs/retention.h"
#include "supervisor/logs/run_folder.h"
#include "supervisor/logs/worker_streams.h"

namespace muster {

namespace {

// Both descriptors lead to the same file, pipe or terminal, so that their lines must be kept apart
// by one Console.
bool same_place(int a, int b) {
  struct stat at_a, at_b;
  return fstat(a, &at_a) == 0 && fstat(b, &at_b) == 0 && at_a.st_dev == at_b.st_dev &&
         at_a.st_ino == at_b.st_ino;
}

constexpr char kPrefixVariable[] = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE";

class JobLogsImpl final : public JobLogs {
 public:
  JobLogsImpl(Loop& loop, const LaunchPlan& plan, Callbacks callbacks, Consoles consoles,
              RunFolder folder, std::vector<WorkerRoutes> routes)
      : plan_(plan),
        folder_(std::move(folder)),
        routes_(std::move(routes)),
        world_{loop,    plan_,   consoles, {},      std::make_shared<PoolGate>(loop),
               nullptr, nullptr, nullptr,  nullptr, std::move(callbacks)} {
    make_consoles();
  }

  ~JobLogsImpl() override { drop_workers(); }

  const std::string& run_dir() const override { return folder_.path; }
  Result<void> begin_attempt(int attempt, int first_rank) override;

  std::string error_file(int local_rank) const override {
    return attempt_dir_.empty() ? "" : worker_dir(local_rank) + "/error.json";
  }
  std::string log_file(int local_rank, Stream stream) const override {
    return streams(local_rank).log_file(stream);
  }

  Result<std::array<StdioSource, 3>> open_worker(int local_rank) override {
    return streams(local_rank).open();
  }
  void worker_started(int local_rank, int pid) override { streams(local_rank).started(pid); }
  void worker_not_started(int local_rank) override { streams(local_rank).not_started(); }
  void worker_ended(int local_rank, Milliseconds bound) override {
    streams(local_rank).ended(bound);
  }
  bool closed(int local_rank) const override { return streams(local_rank).closed(); }
  std::string tail(int local_rank, Stream stream) const override {
    return streams(local_rank).tail(stream);
  }
  std::vector<StreamLine> last_lines(int local_rank, size_t count) const override {
    return streams(local_rank).last_lines(count);
  }
  Recent recent(int local_rank, Stream stream, size_t count) const override {
    return streams(local_rank).recent(stream, count);
  }
  void say(std::string_view line) override { world_.err->say(line); }
  void finish(Milliseconds patience, std::function<void()> on_done) override;

 private:
  void make_consoles();
  void drop_workers();
  Console::Settings console_settings(bool out, bool err);
  Result<void> route_ranks(int first_rank);
  Result<void> open_filter(Stream stream);
  std::string worker_dir(int local_rank) const {
    return attempt_dir_ + "/" + std::to_string(local_rank);
  }
  WorkerStreams& streams(int local_rank) const {
    return *workers_.at(static_cast<size_t>(local_rank));
  }
  void on_room();
  void check_finished();
  void on_patience_over();
  bool flushed() const;
  uint64_t progress() const { return world_.out->bytes_written() + world_.err->bytes_written(); }

  LaunchPlan plan_;
  RunFolder folder_;
  std::vector<WorkerRoutes> routes_;
  int first_rank_ = 0;  // that routes_ are for
  StreamWorld world_;
  std::string attempt_dir_;  // empty without files
  std::vector<std::unique_ptr<WorkerStreams>> workers_;
  std::vector<std::unique_ptr<FilterFile>> old_filters_;  // what they hold still goes to the disk

  Milliseconds patience_{0};
  uint64_t progress_seen_ = 0;
  std::function<void()> on_finished_;
  Owned<Timer> patience_timer_;
  std::shared_ptr<JobLogsImpl*> self_ = std::make_shared<JobLogsImpl*>(this);
};

void JobLogsImpl::make_consoles() {
  if (same_place(world_.descriptors.out, world_.descriptors.err)) {
    world_.err = std::make_shared<Console>(world_.loop, world_.descriptors.err,
                                           console_settings(true, true));
    world_.out = world_.err;
    return;
  }
  world_.out =
      std::make_shared<Console>(world_.loop, world_.descriptors.out, console_settings(true, false));
  world_.err =
      std::make_shared<Console>(world_.loop, world_.descriptors.err, console_settings(false, true));
}

Console::Settings JobLogsImpl::console_settings(bool out, bool err) {
  Console::Settings settings;
  settings.ranks = 0;
  for (const WorkerRoutes& worker : routes_)
    settings.ranks += (out && worker.out.console) || (err && worker.err.console);
  settings.fold = plan_.options.fold;
  settings.files_kept = !folder_.path.empty();
  settings.on_room = [this] { on_room(); };
  return settings;
}

// Which ranks are shown may depend on the numbers that the attempt gives them.
Result<void> JobLogsImpl::route_ranks(int first_rank) {
  if (first_rank == first_rank_) return {};
  const char* prefix = std::getenv(kPrefixVariable);
  auto routes = plan_routes(plan_.options, static_cast<int>(routes_.size()), first_rank,
                            !folder_.path.empty(), prefix == nullptr ? "" : prefix);
  if (!routes) return routes.error();
  routes_ = std::move(*routes);
  first_rank_ = first_rank;
  return {};
}

// Their end may make room on a console, which must not find them half gone.
void JobLogsImpl::drop_workers() {
  auto dropped = std::move(workers_);
  workers_.clear();
}

Result<void> JobLogsImpl::begin_attempt(int attempt, int first_rank) {
  if (auto routed = route_ranks(first_rank); !routed) return routed;
  drop_workers();
  for (auto* filter : {&world_.out_filter, &world_.err_filter}) {
    if (*filter) old_filters_.push_back(std::move(*filter));
  }
  if (!folder_.path.empty()) {
    attempt_dir_ = folder_.path + "/attempt_" + std::to_string(attempt);
    if (mkdir(attempt_dir_.c_str(), 0777) != 0) {
      return errno_error(errno, "make folder " + attempt_dir_);
    }
    for (Stream stream : {Stream::kStdout, Stream::kStderr}) {
      if (auto opened = open_filter(stream); !opened) return opened;
    }
  }
  for (size_t i = 0; i < routes_.size(); ++i) {
    int local_rank = static_cast<int>(i);
    WorkerStreams::Identity identity{first_rank + local_rank, local_rank, attempt, ""};
    if (!attempt_dir_.empty()) {
      identity.dir = worker_dir(local_rank);
      if (mkdir(identity.dir.c_str(), 0777) != 0) {
        return errno_error(errno, "make folder " + identity.dir);
      }
    }
    workers_.push_back(std::make_unique<WorkerStreams>(world_, identity, routes_[i]));
  }
  return {};
}

Result<void> JobLogsImpl::open_filter(Stream stream) {
  bool out = stream == Stream::kStdout;
  const auto& needles =
      out ? plan_.options.duplicate_stdout_filters : plan_.options.duplicate_stderr_filters;
  if (!needles) return {};
  auto file =
      LogFile::create(attempt_dir_ + (out ? "/filtered_stdout.log" : "/filtered_stderr.log"), 0);
  if (!file) return file.error();
  FilterFile::Hooks hooks;
  hooks.on_room = [this] { on_room(); };
  hooks.on_file_error = [this, path = (*file)->path()](const LogFile::Written& written) {
    world_.callbacks.on_trouble(errno_error(written.error, "write " + path).message);
  };
  auto& filter = out ? world_.out_filter : world_.err_filter;
  filter = std::make_unique<FilterFile>(world_.chunks, world_.gate, std::move(*file), *needles,
                                        std::move(hooks));
  return {};
}

// Streams go on in a turn of their own: this comes from inside a console's write.
void JobLogsImpl::on_room() {
  check_finished();
  if (!world_.paused) return;
  world_.paused = false;
  world_.loop.post([weak = std::weak_ptr<JobLogsImpl*>(self_)] {
    auto alive = weak.lock();
    if (!alive) return;
    for (auto& worker : (*alive)->workers_)
      worker->resume();
  });
}

void JobLogsImpl::finish(Milliseconds patience, std::function<void()> on_done) {
  on_finished_ = std::move(on_done);
  patience_ = patience;
  progress_seen_ = progress();
  patience_timer_ = Timer::start(world_.loop, patience_, [this] { on_patience_over(); });
  check_finished();
}

void JobLogsImpl::on_patience_over() {
  if (progress() == progress_seen_) {
    patience_timer_.reset();
    // Posted, because the one who is told may drop us.
    world_.loop.post(std::exchange(on_finished_, nullptr));
    return;
  }
  progress_seen_ = progress();
  patience_timer_ = Timer::start(world_.loop, patience_, [this] { on_patience_over(); });
}

bool JobLogsImpl::flushed() const {
  for (const auto& filter : old_filters_) {
    if (!filter->idle()) return false;
  }
  for (const FilterFile* filter : {world_.out_filter.get(), world_.err_filter.get()}) {
    if (filter != nullptr && !filter->idle()) return false;
  }
  return world_.out->idle() && world_.err->idle();
}

void JobLogsImpl::check_finished() {
  if (!on_finished_ || !flushed()) return;
  patience_timer_.reset();
  world_.loop.post(std::exchange(on_finished_, nullptr));
}

}  // namespace

Result<std::unique_ptr<JobLogs>> JobLogs::open(Loop& loop, const LaunchPlan& plan,
                                               Callbacks callbacks, Consoles consoles) {
  signal(SIGPIPE, SIG_IGN);
  auto folder = make_run_folder(plan.options.log_dir, plan.run_id);
  if (!folder) return folder.error();
  const char* prefix = std::getenv(kPrefixVariable);
  auto routes = plan_routes(plan.options, static_cast<int>(plan.workers.size()), 0,
                            !folder->path.empty(), prefix == nullptr ? "" : prefix);
  if (!routes) return routes.error();
  if (folder->in_default_base) {
    point_latest(folder->base, folder->name);
    run_in_pool(
        loop, [base = folder->base, keep = plan.options.keep_runs] { prune_runs(base, keep); },
        [] {});
  }
  return std::unique_ptr<JobLogs>(std::make_unique<JobLogsImpl>(
      loop, plan, std::move(callbacks), consoles, std::move(*folder), std::move(*routes)));
}

}  // namespace muster
