// SPDX-License-Identifier: Apache-2.0
#include "supervisor/supervise.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <utility>

#include "loop/fd_limit.h"
#include "loop/loop.h"
#include "loop/timer.h"
#include "store/server.h"
#include "supervisor/job/closing.h"
#include "supervisor/job/event_log.h"
#include "supervisor/job/job.h"
#include "supervisor/job/own_error_file.h"
#include "supervisor/job/recorder.h"
#include "supervisor/job/report.h"
#include "supervisor/job/torchelastic_events.h"
#include "supervisor/job/watchdogs.h"
#include "supervisor/logs/job_logs.h"
#include "supervisor/workers/proc_fs.h"

namespace muster {

namespace {

// How long the end of the run waits for a console that takes nothing.
constexpr Milliseconds kConsolePatience{5'000};
// The same for a terminal: somebody has stopped it (Ctrl-S) and will want the report. A signal ends
// the wait.
constexpr Milliseconds kTerminalPatience{600'000};

// How long it waits for a disk that does not answer.
constexpr Milliseconds kDiskPatience{10'000};
// And for the last of what the disk has to do, when the rest has ended.
constexpr Milliseconds kLastPatience{1'000};

// The error file that a launcher above us asked for, "" if there is none.
std::string own_error_file_path(const Environment& environment) {
  return lookup(environment, "TORCHELASTIC_ERROR_FILE").value_or("");
}

// The parts of one run, in the order in which they depend on each other.
class Run {
 public:
  Run(const Launch& launch, GuardLink link) : launch_(launch), front_pid_(link.front_pid) {
    guard_ = std::make_unique<GuardChannel>(
        loop_, std::move(link),
        GuardChannel::Callbacks{[this](const event::SignalReceived& signal) {
                                  if (ended_) return leave();
                                  if (job_) job_->on_signal(signal);
                                },
                                [this] {
                                  if (ended_) return leave();
                                  if (job_) job_->on_front_lost();
                                }});
  }

  int run() {
    Result<void> built = build();
    if (!built) {
      std::fprintf(stderr, "muster: %s\n", built.error().message.c_str());
      write_launch_error(launch_.plan.inherited, built.error().message);
      return kExitNotStarted;
    }
    announce();
    job_->start();
    loop_.run();
    // What hangs in the disk would hang our destructors too.
    if (!loop_.run_until([this] { return !loop_.has_requests(); }, kLastPatience)) {
      ::_exit(exit_code_);
    }
    return exit_code_;
  }

 private:
  // For what keeps a job from starting at all (a taken port, a folder that cannot be made).
  static constexpr int kExitNotStarted = 1;

  Result<void> build();
  Result<void> build_logs();
  Result<void> build_store();
  void observe();
  void announce();
  void on_job_end(int exit_code);
  void finish_logs();
  void leave();

  const Launch& launch_;
  int front_pid_;
  Loop loop_;
  Recorder recorder_;
  std::unique_ptr<JobLogs> logs_;
  std::unique_ptr<EventLog> event_log_;
  std::unique_ptr<StoreServer> store_;
  std::unique_ptr<Job> job_;
  std::unique_ptr<GuardChannel> guard_;
  FdLimit file_limit_;
  Owned<Timer> disk_timer_;
  bool ended_ = false;      // the job is over, files and consoles are being written
  bool finishing_ = false;  // only the consoles are left
  bool hurried_ = false;    // somebody wants us gone: no long wait for a console
  int exit_code_ = 0;
};

Result<void> Run::build() {
  file_limit_ = raise_fd_limit();
  if (Result<void> logs = build_logs(); !logs) return logs;
  if (Result<void> store = build_store(); !store) return store;
  observe();
  job_ = std::make_unique<Job>(Job::Parts{loop_, launch_.plan, recorder_, *logs_, store_.get(),
                                          watchdog_settings(launch_.plan.inherited),
                                          static_cast<int64_t>(file_limit_.inherited)},
                               [this](int exit_code) { on_job_end(exit_code); });
  return {};
}

Result<void> Run::build_logs() {
  JobLogs::Callbacks callbacks;
  callbacks.on_first_output = [this](int local_rank, Stream stream) {
    job_->on_first_output(local_rank, stream);
  };
  callbacks.on_drained = [this](int local_rank) { job_->on_drained(local_rank); };
  callbacks.on_trouble = [this](const std::string& message) { recorder_.trouble("logs", message); };
  auto logs = JobLogs::open(loop_, launch_.plan, std::move(callbacks));
  if (!logs) return logs.error();
  logs_ = std::move(*logs);
  if (logs_->run_dir().empty()) return {};
  auto event_log =
      EventLog::open(loop_, logs_->run_dir() + "/events.jsonl",
                     [this](const std::string& message) { logs_->say("muster: " + message); });
  if (!event_log) return event_log.error();
  event_log_ = std::move(*event_log);
  return {};
}

Result<void> Run::build_store() {
  const LaunchPlan& plan = launch_.plan;
  if (!plan.agent_store) return {};
  StoreServer::Callbacks callbacks;
  callbacks.on_trouble = [this](const std::string& message) {
    recorder_.trouble("store", message);
  };
  auto store = StoreServer::listen(loop_, plan.store_bind, plan.master_port, std::move(callbacks));
  if (!store) return store.error();
  store_ = std::move(*store);
  return {};
}

void Run::observe() {
  if (event_log_) {
    recorder_.observe([this](const JobState&, const Event& event) { event_log_->append(event); });
  }
  recorder_.observe([this](const JobState& state, const Event& event) {
    if (auto line = live_line(state, event)) logs_->say("muster: " + *line);
  });
  const Options& options = launch_.plan.options;
  if (options.event_log_handler == "console") {
    TorchelasticFacts facts{options.role, options.rdzv_backend};
    recorder_.observe([this, facts](const JobState& state, const Event& event) {
      for (const std::string& line : torchelastic_events(state, event, facts))
        logs_->say(line);
    });
  }
}

void Run::announce() {
  const LaunchPlan& plan = launch_.plan;
  for (const std::string& warning : plan.warnings)
    logs_->say("muster: warning: " + warning);
  if (auto low = fd_limit_too_low(file_limit_, static_cast<int>(plan.workers.size()))) {
    logs_->say("muster: warning: " + *low);
  }
  if (!plan.nproc_why.empty()) {
    logs_->say("muster: " + std::to_string(plan.workers.size()) +
               (plan.workers.size() == 1 ? " worker: " : " workers: ") + plan.nproc_why);
  }
  for (const std::string& note : plan.notes)
    logs_->say("muster: " + note);
  event::JobStarted started;
  started.run_id = plan.run_id;
  started.host = plan.host;
  started.program = plan.program_name;
  started.command = launch_.command;
  started.log_dir = logs_->run_dir();
  started.world_size = static_cast<int>(plan.workers.size());
  started.local_world_size = started.world_size;
  started.max_restarts = plan.options.max_restarts;
  started.pid = front_pid_;
  started.started_by = user_name(::getuid(), read_proc_file("/etc/passwd").value_or(""));
  if (started.started_by.empty()) started.started_by = std::to_string(::getuid());
  recorder_.record(std::move(started));
}

void Run::on_job_end(int exit_code) {
  exit_code_ = exit_code;
  ended_ = true;
  hurried_ = job_->asked_to_end();
  const JobState& state = recorder_.state();
  auto log_path = [this](int, int local_rank, Stream stream) {
    return logs_->log_file(local_rank, stream);
  };
  for (const std::string& line : final_report(state, log_path))
    logs_->say(line);

  std::vector<ClosingFile> files;
  std::string summary = summary_json(state);
  if (!logs_->run_dir().empty()) files.push_back({logs_->run_dir() + "/summary.json", summary});
  const std::string& wanted = launch_.plan.options.summary_file;
  if (!wanted.empty()) files.push_back({wanted, summary});
  const std::string error_file = own_error_file_path(launch_.plan.inherited);
  if (!error_file.empty()) {
    auto text = own_error_file(state, job_->root_error_file(), std::chrono::system_clock::now());
    if (text) files.push_back({error_file, *text});
  }
  write_closing_files(loop_, std::move(files), [this](const std::vector<std::string>& troubles) {
    for (const std::string& trouble : troubles)
      logs_->say("muster: " + trouble);
    if (!event_log_) return finish_logs();
    event_log_->flush([this] { finish_logs(); });
  });
  disk_timer_ = Timer::start(loop_, kDiskPatience, [this] {
    logs_->say("muster: a disk or a reader does not answer: what is not written yet is lost");
    finish_logs();
  });
}

// The last events are in the file, now the consoles get what they take, then the loop ends.
void Run::finish_logs() {
  if (std::exchange(finishing_, true)) return;
  disk_timer_.reset();
  const bool terminal = ::isatty(STDOUT_FILENO) == 1 || ::isatty(STDERR_FILENO) == 1;
  const bool patient = terminal && !hurried_;
  logs_->finish(patient ? kTerminalPatience : kConsolePatience, [this] { loop_.stop(); });
}

void Run::leave() {
  hurried_ = true;
  if (finishing_) loop_.stop();
}

}  // namespace

void write_launch_error(const Environment& environment, const std::string& message) {
  const std::string path = own_error_file_path(environment);
  if (path.empty()) return;
  Result<void> written =
      write_whole_file(path, own_error_message(message, std::chrono::system_clock::now()));
  if (!written) std::fprintf(stderr, "muster: %s\n", written.error().message.c_str());
}

int supervise(const Launch& launch, GuardLink link) {
  Run run(launch, std::move(link));
  return run.run();
}

}  // namespace muster
