// SPDX-License-Identifier: Apache-2.0
// guarded_job COUNT PROGRAM [ARGS]: the smallest supervisor: COUNT workers under a front. Prints
// "front PID supervisor PID", then "started" when all workers are, a line per signal that it got,
// and exits with 128 + the first signal, else 0.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "supervisor/workers/guard.h"
#include "supervisor/workers/worker_group.h"

using namespace muster;

namespace {

struct Job {
  Loop loop;
  int started = 0;
  int exit_code = 0;
  std::unique_ptr<WorkerGroup> group;
  std::unique_ptr<GuardChannel> guard;

  void start_next(int count, const SpawnSpec& spec) {
    if (started < count && !group->stopping() && group->spawn(started, spec).has_value()) {
      ++started;
      return loop.post([=, this] { start_next(count, spec); });
    }
    group->seal();
    std::printf("started\n");
  }

  void on_signal(const event::SignalReceived& received) {
    std::printf("signal %d by %d (%s)\n", received.signal, received.sender_pid,
                received.sender.c_str());
    if (received.signal == SIGUSR1 || received.signal == SIGUSR2) {
      return group->forward(received.signal);
    }
    if (group->stopping()) return group->kill_now(StopReason::kSignal);
    exit_code = 128 + received.signal;
    group->stop(received.signal, StopReason::kSignal);
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int count = std::atoi(argv[1]);
  SpawnSpec spec;
  spec.executable = argv[2];
  spec.argv.assign(argv + 2, argv + argc);
  GuardLink link = split_off_supervisor({SIGTERM, SIGINT, SIGHUP, SIGQUIT});
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::printf("front %d supervisor %d\n", link.front_pid, getpid());
  Job job;
  job.group = std::make_unique<WorkerGroup>(
      job.loop, WorkerGroup::Limits{},
      WorkerGroup::Callbacks{{}, {}, [&](std::vector<event::LeftoverFound>) { job.loop.stop(); }});
  job.guard = std::make_unique<GuardChannel>(
      job.loop, std::move(link),
      GuardChannel::Callbacks{[&](const event::SignalReceived& got) { job.on_signal(got); },
                              [&] { job.group->kill_now(StopReason::kGuardLost); }});
  for (char** variable = environ; *variable != nullptr; ++variable)
    spec.environment.emplace_back(*variable);
  job.loop.post([&] { job.start_next(count, spec); });
  job.loop.run();
  return job.exit_code;
}
