// SPDX-License-Identifier: Apache-2.0
//
// Reads the command line, resolves it against this machine, splits into front and supervisor, and
// runs the job. Everything else is library.

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "supervisor/cli/dry_run.h"
#include "supervisor/cli/environment.h"
#include "supervisor/cli/machine.h"
#include "supervisor/cli/parse.h"
#include "supervisor/supervise.h"
#include "supervisor/workers/guard.h"

namespace muster {

namespace {

// Whoever starts muster with a closed stdin, stdout or stderr (`>&-`) gets /dev/null there.
// Otherwise the next descriptor that we open would have that number, and what is meant for the
// console would be written into it.
void occupy_standard_streams() {
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // The lowest free number is `fd` itself, because those below are open by now.
    if (fcntl(fd, F_GETFD) < 0) open("/dev/null", O_RDWR);
  }
}

// Signals that the front passes on: those that stop the job, and USR1/USR2, which go to the
// workers.
std::vector<int> relayed_signals(const Options& options) {
  std::vector<int> signals = stop_signals(options);
  for (int forwarded : {SIGUSR1, SIGUSR2}) {
    if (std::find(signals.begin(), signals.end(), forwarded) == signals.end()) {
      signals.push_back(forwarded);
    }
  }
  return signals;
}

// One that the shell closed (`<&-`) would go to the first thing that we open ourselves, and a
// worker would read our signals as its input.
void fill_standard_descriptors() {
  while (true) {
    const int fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd > STDERR_FILENO) ::close(fd);
    if (fd < 0 || fd > STDERR_FILENO) return;
  }
}

// What was asked for instead of a job: nobody should take half of it for the whole.
int print(const std::string& text, int code) {
  if (std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return code;
  std::fprintf(stderr, "muster: write to stdout: %s\n", std::strerror(errno));
  return 1;
}

int run(std::vector<std::string> command) {
  fill_standard_descriptors();
  Launch launch;
  const Environment environment = current_environment();
  Parsed parsed = parse(command, environment);
  if (auto* early = std::get_if<EarlyExit>(&parsed)) {
    std::fputs(early->err.c_str(), stderr);
    return print(early->out, early->code);
  }
  Result<LaunchPlan> plan = make_plan(std::get<Options>(parsed), this_machine(), environment);
  if (!plan) {
    std::fputs(plan.error().message.c_str(), stderr);
    write_launch_error(environment, plan.error().message);
    return plan.error().code;
  }
  launch.plan = std::move(*plan);
  launch.command = std::move(command);
  if (launch.plan.options.dry_run) {
    return print(dry_run_text(launch.plan), 0);
  }
  GuardLink link = split_off_supervisor(relayed_signals(launch.plan.options));
  // The pool's threads share two arenas: what they allocate is small, what arenas keep is not.
  ::mallopt(M_ARENA_MAX, 2);
  return supervise(launch, std::move(link));
}

}  // namespace

}  // namespace muster

int main(int argc, char** argv) {
  muster::occupy_standard_streams();
  return muster::run(std::vector<std::string>(argv, argv + argc));
}
