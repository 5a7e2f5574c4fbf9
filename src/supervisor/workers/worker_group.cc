// SPDX-License-Identifier: Apache-2.0
#include "supervisor/workers/worker_group.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>

#include "loop/check.h"
#include "loop/signal.h"
#include "loop/timer.h"
#include "supervisor/workers/cgroup.h"
#include "supervisor/workers/exit_watch.h"
#include "supervisor/workers/stop_ladder.h"
#include "supervisor/workers/sweep.h"

namespace muster {

namespace {

// What survives a successful job, or a worker that failed all alone, gets at most so long between
// SIGTERM and SIGKILL: nobody asked it to save anything, and the user waits for the prompt.
constexpr Milliseconds kUnaskedGrace{5'000};
// What is left when the last worker of a stop ends gets at least so long (or term_to_kill, if that
// is shorter).
constexpr Milliseconds kLateGrace{2'000};
// After SIGKILL: how often we look for processes that were started meanwhile.
constexpr Milliseconds kRecheck{20};
// Processes that beget others without end must not flood the events.
constexpr int kMaxTold = 256;

// Its stacks are what is wanted. All ranks that dump their memory at once fill a disk, and none of
// them heeds another signal meanwhile. A limit of 1 forbids a core to a program, too.
void forbid_core(int pid) {
  rlimit limit{};
  if (::prlimit(pid, RLIMIT_CORE, nullptr, &limit) != 0) return;
  limit.rlim_cur = std::min<rlim_t>(1, limit.rlim_max);
  ::prlimit(pid, RLIMIT_CORE, &limit, nullptr);
}

}  // namespace

struct WorkerGroup::Impl {
  Impl(Loop& the_loop, Limits the_limits, Callbacks the_callbacks);
  ~Impl();

  void stop(int signal, StopReason why, const std::set<int>& hung_local_ranks);
  void kill_now(StopReason why);
  void forward(int signal);
  void wake();

  void settle();
  bool report_deaths();
  bool flush_outbox();
  void reap_orphans();
  void tend_leftovers();
  void run_ladder();
  void give_up_on_hung();
  void arm_timer();
  void finish();

  void apply(const StopStep& step);
  void signal_worker(int pid, int signal, bool to_group, StopReason why);
  void sweep_leftovers();
  bool ours_to_sweep(const ProcStat& found) const;
  bool only_musters_own_left() const;

  Loop& loop;
  const Limits limits;
  Callbacks callbacks;
  ExitWatch exits;
  Owned<SignalWatch> child_signal;
  Owned<Timer> timer;
  std::shared_ptr<bool> alive = std::make_shared<bool>(true);

  std::map<int, int> living;  // pid -> local rank
  std::set<int> dead;         // pids of workers that were reaped
  bool all_succeeded = true;  // so far
  bool sealed = false;
  bool stopping = false;  // stop() or kill_now() was called
  bool gone = false;
  bool nobody_left = false;  // no child at all, living or zombie
  bool late_grace_given = false;
  int leftovers_told = 0;
  StopReason reason = StopReason::kFinished;
  StopLadder ladder;
  int level = 0;       // the ladder's signal so far, for leftovers
  std::set<int> hung;  // local ranks that got SIGABRT in place of the first signal
  Clock::time_point hung_until{};
  Sweep sweep;
  std::unique_ptr<CgroupTree> cgroups;  // empty where there are none to be had
  std::vector<SentSignal> outbox;
};

WorkerGroup::Impl::Impl(Loop& the_loop, Limits the_limits, Callbacks the_callbacks)
    : loop(the_loop),
      limits(the_limits),
      callbacks(std::move(the_callbacks)),
      exits(the_loop, [this] { settle(); }),
      child_signal(SignalWatch::start(the_loop, SIGCHLD, [this] { settle(); })) {
  if (auto made = CgroupTree::make()) cgroups = std::move(*made);
}

WorkerGroup::Impl::~Impl() {
  for (const auto& [pid, rank] : living)
    kill(-pid, SIGKILL);
}

// Runs settle() once from the loop: callbacks never come from inside a call.
void WorkerGroup::Impl::wake() {
  loop.post([this, guard = std::weak_ptr<bool>(alive)] {
    if (!guard.expired()) settle();
  });
}

// Everything that happens ends up here, always called by the loop. Each part that calls out says
// whether we still exist afterwards.
void WorkerGroup::Impl::settle() {
  if (gone) return;
  if (!flush_outbox() || !report_deaths()) return;
  reap_orphans();
  run_ladder();
  give_up_on_hung();
  if (sealed && living.empty()) {
    tend_leftovers();
  } else if (sweep.waiting()) {
    sweep_leftovers();
  }
  if (!flush_outbox()) return;
  const bool over = living.empty() && (nobody_left || (sealed && only_musters_own_left()));
  if (sealed && (over || ladder.exhausted(Clock::now()))) return finish();
  arm_timer();
}

bool WorkerGroup::Impl::flush_outbox() {
  const std::weak_ptr<bool> guard = alive;
  std::vector<SentSignal> batch;
  batch.swap(outbox);
  for (const SentSignal& sent : batch) {
    if (callbacks.on_signal_sent) callbacks.on_signal_sent(sent);
    if (guard.expired()) return false;
  }
  return true;
}

bool WorkerGroup::Impl::report_deaths() {
  const std::weak_ptr<bool> guard = alive;
  std::vector<WorkerEnd> ends;
  // All leave the table before anybody is told: their pids may already belong to strangers.
  for (const ExitWatch::Death& death : exits.reap()) {
    auto worker = living.find(death.pid);
    MUST(worker != living.end());
    ends.push_back({worker->second, death.pid, death.wait_status, death.max_rss_kib});
    living.erase(worker);
    dead.insert(death.pid);
    if (death.wait_status != 0) all_succeeded = false;
  }
  if (stopping && !ends.empty()) sweep_leftovers();
  for (const WorkerEnd& end : ends) {
    if (callbacks.on_exit) callbacks.on_exit(end);
    if (guard.expired()) return false;
  }
  return true;
}

// Reaps adopted orphans, and never a worker: that one's place in the order of deaths is not known
// before its pidfd says so.
void WorkerGroup::Impl::reap_orphans() {
  nobody_left = false;
  for (;;) {
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
      if (errno == EINTR) continue;
      nobody_left = errno == ECHILD;
      return;
    }
    if (info.si_pid == 0 || living.count(info.si_pid) != 0) return;
    waitpid(info.si_pid, nullptr, WNOHANG);
  }
}

// The last worker is gone. What is left gets the time that a stop still has, or a ladder of its
// own.
void WorkerGroup::Impl::tend_leftovers() {
  if (nobody_left) return;
  const Clock::time_point now = Clock::now();
  if (!ladder.begun()) {
    const Milliseconds natural = all_succeeded ? limits.natural_end : Milliseconds(0);
    ladder.begin(leftover_steps(natural, std::min(limits.term_to_kill, kUnaskedGrace),
                                limits.kill_to_giving_up),
                 now);
    late_grace_given = true;
    run_ladder();
    return;
  }
  sweep_leftovers();
  // Once only, or processes that beget others could put off the end for ever.
  if (level != SIGKILL && !late_grace_given) {
    ladder.extend(std::min(limits.term_to_kill, kLateGrace), now);
  }
  late_grace_given = true;
}

void WorkerGroup::Impl::run_ladder() {
  while (auto step = ladder.take_due(Clock::now()))
    apply(*step);
}

// Those that SIGABRT has not ended go the way of the others.
void WorkerGroup::Impl::give_up_on_hung() {
  if (hung.empty() || Clock::now() < hung_until) return;
  const std::set<int> late = std::exchange(hung, {});
  if (level == SIGKILL) return;
  for (const auto& [pid, rank] : living)
    if (late.count(rank) != 0) signal_worker(pid, level, false, reason);
}

void WorkerGroup::Impl::arm_timer() {
  timer.reset();
  const Clock::time_point now = Clock::now();
  if (!ladder.begun() || ladder.exhausted(now)) return;
  auto wait = std::chrono::ceil<Milliseconds>(ladder.due() - now);
  // Only SIGCHLD would tell of new processes, and those who start them send none.
  if (level == SIGKILL) wait = std::min(wait, kRecheck);
  if (sweep.waiting()) wait = std::min(wait, Sweep::kOwnEnd);
  if (!hung.empty()) {
    wait = std::min(wait, std::chrono::ceil<Milliseconds>(hung_until - now));
  }
  timer = Timer::start(loop, std::max(wait, Milliseconds(1)), [this] { settle(); });
}

void WorkerGroup::Impl::finish() {
  gone = true;
  timer.reset();
  child_signal.reset();
  std::vector<event::LeftoverFound> found = sweep.report();
  cgroups.reset();
  if (callbacks.on_gone) callbacks.on_gone(std::move(found));
}

void WorkerGroup::Impl::apply(const StopStep& step) {
  if (step.signal == 0) return;
  level = step.signal;
  const bool to_group = step.target == StopTarget::kGroup;
  for (const auto& [pid, rank] : living) {
    const bool aborts = !to_group && hung.count(rank) != 0;
    if (aborts) forbid_core(pid);
    signal_worker(pid, aborts ? SIGABRT : step.signal, to_group, reason);
  }
  // A worker that was stopped (SIGSTOP) could not act on the signal.
  if (step.signal != SIGKILL) {
    for (const auto& [pid, rank] : living)
      kill(pid, SIGCONT);
  }
  sweep_leftovers();
}

void WorkerGroup::Impl::signal_worker(int pid, int signal, bool to_group, StopReason why) {
  // One that already died by itself must not look like our victim, although its death is yet to be
  // reported.
  siginfo_t info{};
  const bool dead_already =
      waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
      info.si_pid == pid;
  // Until we reap it, its pid and the group that it leads belong to it, even as a zombie.
  if (kill(to_group ? -pid : pid, signal) != 0 || dead_already) return;
  outbox.push_back({living.at(pid), pid, signal, to_group, why});
}

bool WorkerGroup::Impl::only_musters_own_left() const {
  bool any = false;
  for (const ProcStat& found : descendants_of(getpid())) {
    if (!is_musters_own(found)) return false;
    any = true;
  }
  return any;  // the kernel says that there is a child: an empty list is one that could not be had
}

bool WorkerGroup::Impl::ours_to_sweep(const ProcStat& found) const {
  if (living.count(found.pid) != 0) return false;  // the ladder's own business
  if (is_musters_own(found)) return false;
  if (level == SIGKILL || living.empty()) return true;
  // While others live, only the session of a dead worker is certainly nobody's any more. A daemon
  // may still be of use to the worker that started it.
  return dead.count(found.session) != 0;
}

void WorkerGroup::Impl::sweep_leftovers() {
  if (level == 0) return;
  std::set<int> spared;
  if (level != SIGKILL) {
    for (const auto& [pid, rank] : living)
      spared.insert(pid);
  }
  auto wanted = [this](const ProcStat& found) { return ours_to_sweep(found); };
  for (const Sweep::Sent& sent : sweep.pass(level, spared, wanted))
    if (++leftovers_told <= kMaxTold) outbox.push_back({-1, sent.pid, sent.signal, false, reason});
  // Last, so that what it ends was found and told before.
  if (level == SIGKILL && cgroups) cgroups->kill_all();
}

void WorkerGroup::Impl::stop(int signal, StopReason why, const std::set<int>& hung_local_ranks) {
  if (gone) return;
  if (stopping) {
    for (const auto& [pid, rank] : living)
      signal_worker(pid, signal, false, why);
  } else {
    stopping = true;
    reason = why;
    hung = hung_local_ranks;
    hung_until = Clock::now() + std::min(limits.abort_patience, limits.term_to_kill);
    ladder.begin(stop_steps(signal, limits.term_to_kill, limits.kill_to_giving_up), Clock::now());
    run_ladder();
  }
  wake();
}

void WorkerGroup::Impl::kill_now(StopReason why) {
  if (gone || level == SIGKILL) return;
  stopping = true;
  reason = why;
  ladder.begin(kill_steps(limits.kill_to_giving_up), Clock::now());
  run_ladder();
  wake();
}

void WorkerGroup::Impl::forward(int signal) {
  for (const auto& [pid, rank] : living)
    signal_worker(pid, signal, false, StopReason::kNone);
  wake();
}

WorkerGroup::WorkerGroup(Loop& loop, Limits limits, Callbacks callbacks)
    : impl_(std::make_unique<Impl>(loop, limits, std::move(callbacks))) {}

WorkerGroup::~WorkerGroup() = default;

Result<int> WorkerGroup::spawn(int local_rank, SpawnSpec spec) {
  MUST(!impl_->sealed);
  if (impl_->stopping) return Error{ECANCELED, "the workers are being stopped"};
  UniqueFd cgroup = impl_->cgroups ? impl_->cgroups->add(local_rank) : UniqueFd();
  spec.cgroup = cgroup.get();
  auto spawned = muster::spawn(spec);
  if (!spawned) return std::move(spawned).error();
  impl_->living.emplace(spawned->pid, local_rank);
  impl_->exits.add(spawned->pid, std::move(spawned->pidfd));
  return spawned->pid;
}

void WorkerGroup::seal() {
  impl_->sealed = true;
  impl_->wake();
}

void WorkerGroup::stop(int signal, StopReason reason) {
  impl_->stop(signal, reason, {});
}

void WorkerGroup::stop(int signal, StopReason reason, const std::set<int>& hung_local_ranks) {
  impl_->stop(signal, reason, hung_local_ranks);
}

void WorkerGroup::kill_now(StopReason reason) {
  impl_->kill_now(reason);
}

void WorkerGroup::forward(int signal) {
  impl_->forward(signal);
}

int WorkerGroup::running() const {
  return static_cast<int>(impl_->living.size());
}

bool WorkerGroup::stopping() const {
  return impl_->stopping;
}

}  // namespace muster
