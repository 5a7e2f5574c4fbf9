// SPDX-License-Identifier: Apache-2.0
#include "supervisor/supervise.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "loop/fd_limit.h"
#include "loop/loop.h"
#include "loop/timer.h"
#include "loop/unique_fd.h"
#include "supervisor/hang/hung_failure.h"
#include "supervisor/hang/stall_watch.h"
#include "supervisor/job/closing.h"
#include "supervisor/job/event_log.h"
#include "supervisor/job/job.h"
#include "supervisor/job/own_error_file.h"
#include "supervisor/job/recorder.h"
#include "supervisor/job/recording.h"
#include "supervisor/job/report.h"
#include "supervisor/job/torchelastic_events.h"
#include "supervisor/job/uneven_end.h"
#include "supervisor/job/watchdogs.h"
#include "supervisor/live_hook.h"
#include "supervisor/live_status.h"
#include "supervisor/logs/job_logs.h"
#include "supervisor/rendezvous/rendezvous.h"
#include "supervisor/stacks/evidence_rounds.h"
#include "supervisor/stacks/evidence_saver.h"
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

std::string started_by() {
  std::string name = user_name(::getuid(), read_proc_file("/etc/passwd").value_or(""));
  return name.empty() ? std::to_string(::getuid()) : name;
}

// A free port, for workers that host the store themselves and so must be told a number that nobody
// holds. (With our own store no port is ever picked before it is bound.)
int free_port() {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof(address);
  if (!fd || ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return 0;
  }
  return ntohs(address.sin_port);
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
  Result<void> build_link();
  Result<void> build_status();
  void watch_for_stalls();
  void respond_to_stall();
  void end_stall(const std::vector<event::EvidenceSaved>& saved);
  NodeFacts facts() const;
  Surroundings::Gpu gpu_of(int local_rank);
  void observe();
  void announce();
  void on_job_end(int exit_code);
  void finish_logs();
  void finish_consoles();
  void show_and_say_goodbye();
  void stop_when_done();
  void leave();

  const Launch& launch_;
  int front_pid_;
  Loop loop_;
  Recorder recorder_;
  std::unique_ptr<JobLogs> logs_;
  std::unique_ptr<EventLog> event_log_;
  UnevenEndWatch uneven_{loop_, recorder_,
                         [this](const std::string& line) { logs_->say("muster: " + line); }};
  std::unique_ptr<Rendezvous> link_;
  std::unique_ptr<Job> job_;
  std::unique_ptr<EvidenceSaver> evidence_;
  EvidenceRounds evidence_rounds_{
      {loop_, [this]() -> const JobState& { return recorder_.state(); },
       [this](const std::string& why) { return link_->request_evidence(why); }}};
  std::unique_ptr<LiveStatus> status_;
  std::unique_ptr<FailureHook> hook_;  // of --on-failure, null without
  std::optional<StallWatch> stall_watch_;
  std::unique_ptr<GuardChannel> guard_;
  FdLimit file_limit_;
  Owned<Timer> response_;  // to a stall, with what was saved of it
  Owned<Timer> disk_timer_;
  bool ended_ = false;         // the job is over, files and consoles are being written
  bool said_goodbye_ = false;  // no other node needs this one any more
  bool flushed_ = false;       // the consoles have what they take
  bool written_ = false;       // the files are, or never will be
  bool finishing_ = false;     // only the consoles are left
  bool hurried_ = false;       // somebody wants us gone: no long wait for a console
  int exit_code_ = 0;
};

Result<void> Run::build() {
  file_limit_ = raise_fd_limit();
  make_room_for_descriptors(file_limit_, static_cast<int>(launch_.plan.workers.size()));
  if (Result<void> logs = build_logs(); !logs) return logs;
  if (Result<void> link = build_link(); !link) return link;
  evidence_ = std::make_unique<EvidenceSaver>(EvidenceSaver::Parts{
      loop_, recorder_, logs_->run_dir(), launch_.plan.host, [this](const RankState& rank) {
        return dump_of(logs_->error_file(rank.local_rank), rank.rank);
      }});
  observe();
  auto store_wait = [this](int pid) {
    const StoreServer* store = link_->store();
    return store ? store->left_waiting(static_cast<uint32_t>(pid)) : "";
  };
  job_ = std::make_unique<Job>(
      Job::Parts{loop_, launch_.plan, recorder_, *logs_, *link_,
                 watchdog_settings(launch_.plan.inherited),
                 static_cast<int64_t>(file_limit_.inherited), &launch_.failure_rules,
                 std::move(store_wait), [this](int local_rank) { return gpu_of(local_rank); }},
      [this](int exit_code) { on_job_end(exit_code); });
  return build_status();
}

Surroundings::Gpu Run::gpu_of(int local_rank) {
  const auto gpu = status_ ? status_->gpu_of(local_rank) : std::nullopt;
  return gpu ? Surroundings::Gpu{gpu->pci, gpu_trouble(*gpu)} : Surroundings::Gpu();
}

Result<void> Run::build_logs() {
  JobLogs::Callbacks callbacks;
  callbacks.on_first_output = [this](int local_rank, Stream stream) {
    job_->on_first_output(local_rank, stream);
  };
  callbacks.on_closed = [this](int local_rank) { job_->on_closed(local_rank); };
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

Result<void> Run::build_status() {
  auto status =
      LiveStatus::start(loop_, LiveSource::Parts{recorder_, launch_.plan, logs_->run_dir(), *logs_,
                                                 *link_, *job_, evidence_rounds_, *evidence_});
  if (!status) return status.error();
  status_ = std::move(*status);
  recorder_.observe([this](const JobState&, const Event& event) {
    if (!status_) return;
    if (auto line = status_->observe(event)) logs_->say("muster: " + *line);
  });
  watch_for_stalls();
  return {};
}

void Run::watch_for_stalls() {
  StallWatch::Parts parts;
  parts.state = [this]() -> const JobState& { return recorder_.state(); };
  parts.hosting = [this] { return status_ && link_ && link_->hosting(); };
  parts.samples = [this] { return status_->known_samples(); };
  parts.hurry = [this] { status_->look_again(); };
  parts.store_waiters = [this] { return status_->store_waiters(); };
  parts.record = [this](EventBody event) { recorder_.record(std::move(event)); };
  parts.on_stall = [this](const Stall&) { respond_to_stall(); };
  stall_watch_.emplace(loop_, launch_.plan.options.hang_timeout, std::move(parts));
  recorder_.observe([this](const JobState&, const Event& event) { stall_watch_->observe(event); });
}

// What can be saved on all nodes comes first, then the end, unless the job goes on meanwhile.
void Run::respond_to_stall() {
  const HangAction action = launch_.plan.options.hang_action;
  const AttemptState* attempt = recorder_.state().current();
  if (action == HangAction::kWarn || attempt == nullptr) return;
  // In a turn of its own: we may be told from inside of the recorder, which tells others yet.
  auto end = [this, number = attempt->attempt](const std::vector<event::EvidenceSaved>& saved) {
    response_ = Timer::start(loop_, Milliseconds(0), [this, number, saved] {
      if (!ended_ && stall_watch_->stalled(number)) end_stall(saved);
    });
  };
  const std::string refusal = evidence_rounds_.begin("stalled", end);
  if (refusal.empty()) return;
  recorder_.trouble("hang", "nothing could be saved: " + refusal);
  end({});
}

void Run::end_stall(const std::vector<event::EvidenceSaved>& saved) {
  const HangAction action = launch_.plan.options.hang_action;
  const Stall stall = stall_watch_->look_closer(saved);
  if (action == HangAction::kDump) return;
  // What is known is as old as the round was long: somebody may have gone on meanwhile.
  stall_watch_->confirm([this, action, stall, saved] {
    response_ = Timer::start(loop_, Milliseconds(0), [this, action, stall, saved] {
      if (ended_) return;
      link_->hung(hung_failure(recorder_.state(), stall, action == HangAction::kRestart, saved));
    });
  });
}

NodeFacts Run::facts() const {
  const LaunchPlan& plan = launch_.plan;
  NodeFacts facts;
  facts.host = plan.host;
  facts.pid = front_pid_;
  facts.workers = static_cast<int>(plan.workers.size());
  facts.role = plan.options.role;
  facts.node_rank = plan.rendezvous.node_rank;
  facts.address = plan.rendezvous.local_addr;
  facts.endpoint_host = plan.rendezvous.endpoint_host;
  facts.log_dir = logs_->run_dir();
  facts.started_by = started_by();
  // Of several nodes the coordinator listens on the port that was asked for.
  const bool asked = plan.master_port != 0 && !plan.rendezvous.several_nodes();
  facts.spare_port = plan.agent_store ? 0 : asked ? plan.master_port : free_port();
  facts.terms = {plan.rendezvous.min_nodes,
                 plan.rendezvous.max_nodes,
                 plan.options.max_restarts,
                 plan.options.restart_always,
                 plan.agent_store,
                 failure_policy_text(plan.options.failure_policy),
                 same_failure_limit_text(plan.options.same_failure_limit),
                 restart_backoff_text(plan.options.restart_backoff)};
  return facts;
}

Result<void> Run::build_link() {
  Rendezvous::Outside outside;
  outside.job.on_assignment = [this](const Assignment& a) { job_->on_assignment(a); };
  outside.job.on_stop = [this](const StopOrder& order) { job_->on_stop(order); };
  outside.job.on_verdict = [this](const AttemptVerdict& verdict) { job_->on_verdict(verdict); };
  outside.job.on_end = [this](const JobEnd& end) { job_->on_job_end(end); };
  outside.job.on_evidence = [this](const std::string& why) { evidence_->save(why); };
  outside.job.on_say = [this](const std::string& line) { logs_->say("muster: " + line); };
  outside.job.on_event = [this](EventBody event) { recorder_.record(std::move(event)); };
  outside.on_record = outside.job.on_event;
  outside.on_request = [this](std::unique_ptr<HttpExchange> exchange) {
    if (status_) status_->handle_forwarded(std::move(exchange));
  };
  outside.take_samples = [this] {
    return status_ ? status_->own_samples() : std::vector<RankSample>();
  };
  outside.on_samples = [this](int attempt, const std::vector<RankSample>& samples) {
    if (status_) status_->take_samples(attempt, samples);
  };
  auto link = Rendezvous::create(loop_, launch_.plan, facts(), std::move(outside));
  if (!link) return link.error();
  link_ = std::move(*link);
  return {};
}

void Run::observe() {
  if (event_log_) {
    recorder_.observe([this](const JobState&, const Event& event) { event_log_->append(event); });
  }
  recorder_.observe([this](const JobState& state, const Event& event) {
    if (auto line = live_line(state, event)) logs_->say("muster: " + *line);
  });
  recorder_.observe([this](const JobState&, const Event& event) {
    uneven_.observe(event);
    evidence_->observe(event);
    evidence_rounds_.observe(event);
    if (link_) link_->report(event);
  });
  hook_ = make_live_hook({loop_, recorder_, *logs_, *link_, launch_.plan}, [this] {
    if (written_) finish_consoles();
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
  started.local_world_size = static_cast<int>(plan.workers.size());
  started.min_nodes = plan.rendezvous.min_nodes;
  started.max_nodes = plan.rendezvous.max_nodes;
  // Of several nodes nobody knows it before they have met.
  started.world_size = plan.rendezvous.several_nodes() ? 0 : started.local_world_size;
  started.max_restarts = plan.options.max_restarts;
  started.pid = front_pid_;
  started.started_by = started_by();
  recorder_.record(std::move(started));
}

void Run::on_job_end(int exit_code) {
  exit_code_ = exit_code;
  ended_ = true;
  hurried_ = job_->asked_to_end();
  show_and_say_goodbye();
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

// The last events are in the file. What the hook has to say comes after them.
void Run::finish_logs() {
  written_ = true;
  disk_timer_.reset();
  if (!hook_ || !hook_->busy()) finish_consoles();
}

// Now the consoles get what they take, then the loop ends.
void Run::finish_consoles() {
  if (std::exchange(finishing_, true)) return;
  const bool terminal = ::isatty(STDOUT_FILENO) == 1 || ::isatty(STDERR_FILENO) == 1;
  const bool patient = terminal && !hurried_;
  logs_->finish(patient ? kTerminalPatience : kConsolePatience, [this] {
    flushed_ = true;
    stop_when_done();
  });
}

// A node whose front was killed is a lost one, not one that left: its connection just ends. Others
// say goodbye when whoever watches has everything: the coordinator's page may get it from here.
void Run::show_and_say_goodbye() {
  if (job_->front_lost()) {
    said_goodbye_ = true;
    loop_.post([this] {
      status_.reset();
      link_.reset();
    });
    return;
  }
  status_->finish([this] {
    link_->close([this] {
      said_goodbye_ = true;
      stop_when_done();
    });
  });
}

void Run::stop_when_done() {
  if (flushed_ && said_goodbye_) loop_.stop();
}

void Run::leave() {
  hurried_ = true;
  if (finishing_) return loop_.stop();
  if (!written_) return;
  logs_->say("muster: on-failure: did not end before muster was told to");
  finish_consoles();
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
