// SPDX-License-Identifier: Apache-2.0
#include "supervisor/workers/worker_group.h"

#include <doctest/doctest.h>
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "supervisor/workers/proc_fs.h"
#include "workers/workers_test.h"

namespace muster {

namespace {

// Long enough that a test which waits for it fails by its own deadline.
constexpr Milliseconds kNever{600'000};

}  // namespace

TEST_CASE_FIXTURE(WorkersTest, "the wait status of each worker comes as the kernel gave it") {
  make_group();
  start(0, "exit_with", {"0"});
  start(1, "exit_with", {"7"});
  start(2, "crash", {"11"});
  group->seal();
  REQUIRE(run_until_gone());
  REQUIRE(ends.size() == 3);
  CHECK(WIFEXITED(end_of(0)->wait_status));
  CHECK(WEXITSTATUS(end_of(1)->wait_status) == 7);
  CHECK(WTERMSIG(end_of(2)->wait_status) == SIGSEGV);
  CHECK(end_of(0)->max_rss_kib > 0);
  CHECK(group->running() == 0);
  CHECK(sent.empty());
  CHECK(found.empty());
}

TEST_CASE_FIXTURE(WorkersTest, "deaths are told in the order in which they happened") {
  constexpr int kWorkers = 12;
  make_group();
  std::vector<int> pids;
  for (int rank = 0; rank < kWorkers; ++rank)
    pids.push_back(start(rank, "ignore_term"));
  group->seal();
  std::vector<int> expected;
  for (int i = 0; i < kWorkers; ++i) {
    const int rank = (i * 5 + 7) % kWorkers;
    expected.push_back(rank);
    kill(pids[static_cast<size_t>(rank)], SIGKILL);
    siginfo_t info{};  // until it is dead, so that the order is certain
    waitid(P_PID, static_cast<id_t>(pids[static_cast<size_t>(rank)]), &info, WEXITED | WNOWAIT);
  }
  REQUIRE(run_until_gone());
  std::vector<int> order;
  for (const WorkerEnd& end : ends)
    order.push_back(end.local_rank);
  CHECK(order == expected);
}

TEST_CASE_FIXTURE(WorkersTest, "no callback comes from inside a call, and an empty group is gone") {
  make_group();
  group->seal();
  group->stop(SIGTERM, StopReason::kSignal);
  group->kill_now(StopReason::kSignal);
  CHECK_FALSE(gone);
  CHECK(run_until_gone());
  CHECK(found.empty());
}

TEST_CASE_FIXTURE(WorkersTest,
                  "a stop sends the given signal to the worker and waits for its end") {
  make_group({kNever, kNever, kNever});
  const int pid = start_ready(0, "exit_on_signal", {"5"});
  start_ready(1, "exit_on_signal", {"0"});
  group->seal();
  group->stop(SIGINT, StopReason::kFailure);
  CHECK(group->stopping());
  CHECK(sent.empty());
  REQUIRE(run_until_gone());
  CHECK(WEXITSTATUS(end_of(0)->wait_status) == 5);
  CHECK(WEXITSTATUS(end_of(1)->wait_status) == 0);
  REQUIRE(sent.size() == 2);
  CHECK(sent[0].pid == pid);
  CHECK(sent[0].local_rank == 0);
  CHECK(sent[0].signal == SIGINT);
  CHECK_FALSE(sent[0].to_group);
  CHECK(sent[0].reason == StopReason::kFailure);
  CHECK(readers[0]->has("signal 2\n"));
}

TEST_CASE_FIXTURE(WorkersTest,
                  "a worker that ignores the signal is killed after the grace period") {
  make_group({Milliseconds(50), kNever, kNever});
  const int stubborn = start_ready(0, "ignore_term");
  const int obedient = start_ready(1, "exit_on_signal", {"0"});
  group->seal();
  group->stop(SIGTERM, StopReason::kSignal);
  REQUIRE(run_until_gone());
  CHECK(WTERMSIG(end_of(0)->wait_status) == SIGKILL);
  CHECK(signals_sent(stubborn, SIGTERM) == 1);
  CHECK(signals_sent(stubborn, SIGKILL) == 1);
  CHECK(signals_sent(obedient, SIGKILL) == 0);
  CHECK(sent.back().to_group);
}

TEST_CASE_FIXTURE(WorkersTest, "a second stop sends its signal again and nothing else") {
  make_group({kNever, kNever, kNever});
  const int pid = start_ready(0, "ignore_term");
  group->seal();
  group->stop(SIGTERM, StopReason::kSignal);
  group->stop(SIGHUP, StopReason::kSignal);
  REQUIRE(run_until([&] { return sent.size() == 2; }));
  CHECK(signals_sent(pid, SIGTERM) == 1);
  CHECK(signals_sent(pid, SIGHUP) == 1);
  group->kill_now(StopReason::kSignal);
  REQUIRE(run_until_gone());
  CHECK(WTERMSIG(end_of(0)->wait_status) == SIGKILL);
}

TEST_CASE_FIXTURE(WorkersTest, "a stopped worker is continued so that it can act on the signal") {
  make_group({kNever, kNever, kNever});
  const int pid = start_ready(0, "exit_on_signal", {"3"});
  kill(pid, SIGSTOP);
  group->seal();
  group->stop(SIGTERM, StopReason::kSignal);
  REQUIRE(run_until_gone());
  CHECK(WEXITSTATUS(end_of(0)->wait_status) == 3);
}

TEST_CASE_FIXTURE(WorkersTest, "who died before the stop gets no signal and is nobody's victim") {
  make_group({kNever, kNever, kNever});
  const int pid = start(0, "exit_with", {"9"});
  siginfo_t info{};
  REQUIRE(waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT) == 0);
  start_ready(1, "exit_on_signal", {"0"});
  group->seal();
  group->stop(SIGTERM, StopReason::kFailure);
  REQUIRE(run_until_gone());
  CHECK(signals_sent(pid, SIGTERM) == 0);
  CHECK(WEXITSTATUS(end_of(0)->wait_status) == 9);
}

TEST_CASE_FIXTURE(WorkersTest, "a forwarded signal changes nothing else") {
  make_group({kNever, kNever, kNever});
  start_ready(0, "exit_on_signal", {"0"});
  group->seal();
  group->forward(SIGUSR1);
  group->forward(SIGUSR2);
  REQUIRE(run_until([&] { return readers[0]->has("signal 10\nsignal 12\n"); }));
  CHECK_FALSE(group->stopping());
  CHECK(group->running() == 1);
  REQUIRE(sent.size() == 2);
  CHECK(sent[0].reason == StopReason::kNone);
  group->stop(SIGTERM, StopReason::kSignal);
  REQUIRE(run_until_gone());
}

TEST_CASE_FIXTURE(WorkersTest, "a stop in the middle of the start leaves none") {
  make_group({kNever, kNever, kNever});
  int started = 0;
  std::function<void()> start_next = [&] {
    auto pid = group->spawn(started, helper_spec(mark, "leave_behind", {"d", "stay"}));
    if (!pid) {
      CHECK(pid.error().code == ECANCELED);
      group->seal();
      return;
    }
    if (++started == 30) group->stop(SIGTERM, StopReason::kSignal);
    REQUIRE(started < 60);
    loop.post(start_next);
  };
  loop.post(start_next);
  REQUIRE(run_until_gone());
  CHECK(started == 30);
  CHECK(ends.size() == 30);
  CHECK(marked_processes(mark).empty());
}

TEST_CASE_FIXTURE(WorkersTest, "the job may drop the group inside its last callback") {
  WorkerGroup::Callbacks callbacks;
  callbacks.on_gone = [this](std::vector<event::LeftoverFound>) {
    gone = true;
    group.reset();
  };
  group = std::make_unique<WorkerGroup>(loop, WorkerGroup::Limits{}, std::move(callbacks));
  start(0, "exit_with", {"0"});
  group->seal();
  CHECK(run_until_gone());
  CHECK(group == nullptr);
}

TEST_CASE_FIXTURE(WorkersTest, "a worker that dies under a tracer is reaped when that lets go") {
  make_group({kNever, kNever, kNever});
  const int worker = start_ready(0, "ignore_term");
  group->seal();
  Reader traced(loop);
  const pid_t tracer = fork();
  if (tracer == 0) {
    const bool attached = ptrace(PTRACE_SEIZE, worker, nullptr, nullptr) == 0;
    (void)!write(traced.writer(), attached ? "yes" : "no", attached ? 3 : 2);
    for (;;)
      pause();
  }
  REQUIRE(run_until([&] { return !traced.text().empty(); }));
  REQUIRE(traced.text() == "yes");
  kill(worker, SIGKILL);
  REQUIRE(run_until([&] {
    auto stat = read_proc_stat(worker);
    return stat.has_value() && stat->state == 'Z';
  }));
  bool turned = false;
  loop.post([&] { turned = true; });
  REQUIRE(run_until([&] { return turned; }));
  CHECK(ends.empty());
  kill(tracer, SIGKILL);
  REQUIRE(run_until_gone());
  REQUIRE(ends.size() == 1);
  CHECK(WTERMSIG(ends[0].wait_status) == SIGKILL);
}

TEST_CASE_FIXTURE(WorkersTest, "a program that is missing is an error and the others go on") {
  make_group();
  SpawnSpec spec = helper_spec(mark, "no_such_helper");
  auto pid = group->spawn(0, spec);
  REQUIRE_FALSE(pid.has_value());
  CHECK(pid.error().code == ENOENT);
  start(1, "exit_with", {"0"});
  group->seal();
  REQUIRE(run_until_gone());
  CHECK(ends.size() == 1);
}

TEST_CASE_FIXTURE(WorkersTest, "of workers that are stopped the one that hangs is aborted first") {
  make_group({kNever, kNever, kNever, kNever});
  start_ready(0, "exit_on_signal", {"5"});
  start_ready(1, "exit_on_signal", {"5"});
  group->seal();
  group->stop(SIGTERM, StopReason::kFailure, {1});
  REQUIRE(run_until_gone());
  CHECK(WEXITSTATUS(end_of(0)->wait_status) == 5);
  CHECK(WIFSIGNALED(end_of(1)->wait_status));
  CHECK(WTERMSIG(end_of(1)->wait_status) == SIGABRT);
  REQUIRE(sent.size() == 2);
  CHECK(sent[0].signal == SIGTERM);
  CHECK(sent[1].signal == SIGABRT);
}

TEST_CASE_FIXTURE(WorkersTest, "one that hangs and outlives SIGABRT goes the way of the others") {
  make_group({kNever, kNever, kNever, Milliseconds(50)});
  start_ready(0, "exit_on_signal", {"5", "ABRT"});
  group->seal();
  group->stop(SIGTERM, StopReason::kFailure, {0});
  REQUIRE(run_until_gone());
  CHECK(WEXITSTATUS(end_of(0)->wait_status) == 5);
  REQUIRE(sent.size() == 2);
  CHECK(sent[0].signal == SIGABRT);
  CHECK(sent[1].signal == SIGTERM);
}

}  // namespace muster
