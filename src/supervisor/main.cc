// SPDX-License-Identifier: Apache-2.0
//
// Reads the command line, resolves it against this machine, splits into front and supervisor, and
// runs the job. Everything else is library.

#include <fcntl.h>
#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "supervisor/cli/command_parse.h"
#include "supervisor/cli/dry_run.h"
#include "supervisor/cli/environment.h"
#include "supervisor/cli/machine.h"
#include "supervisor/cli/parse.h"
#include "supervisor/cli/token.h"
#include "supervisor/commands/commands.h"
#include "supervisor/job/restart_policy.h"
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

// What was asked for instead of a job: nobody should take half of it for the whole.
int print(const std::string& text, int code) {
  if (std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return code;
  std::fprintf(stderr, "muster: write to stdout: %s\n", std::strerror(errno));
  return 1;
}

int leave_early(const EarlyExit& early) {
  std::fputs(early.err.c_str(), stderr);
  return print(early.out, early.code);
}

// `muster status`, not a script of that name; but whoever has one should learn how to start it.
int run_asked(const std::string& word, const ParsedCommand& parsed) {
  if (auto* early = std::get_if<EarlyExit>(&parsed)) return leave_early(*early);
  struct stat info;
  if (stat(word.c_str(), &info) == 0 && S_ISREG(info.st_mode)) {
    std::fprintf(stderr, "muster: '%s' is a command here; the file of that name starts as ./%s\n",
                 word.c_str(), word.c_str());
  }
  return run_command(std::get<CommandOptions>(parsed));
}

int refuse(const Environment& environment, const std::string& problem) {
  constexpr int kUsage = 2;
  const std::string message = "muster: " + problem + "\n";
  std::fputs(message.c_str(), stderr);
  write_launch_error(environment, message);
  return kUsage;
}

int run(std::vector<std::string> command) {
  if (auto asked = parse_command(command)) return run_asked(command[1], *asked);
  Launch launch;
  const Environment environment = current_environment();
  Parsed parsed = parse(command, environment);
  if (auto* early = std::get_if<EarlyExit>(&parsed)) return leave_early(*early);
  Result<LaunchPlan> plan = make_plan(std::get<Options>(parsed), this_machine(), environment);
  hide_own_token();
  if (!plan) {
    std::fputs(plan.error().message.c_str(), stderr);
    write_launch_error(environment, plan.error().message);
    return plan.error().code;
  }
  Result<FailureRules> rules = read_failure_rules(plan->options.failure_rules);
  if (!rules) return refuse(environment, "--failure-rules " + rules.error().message);
  launch.plan = std::move(*plan);
  launch.failure_rules = std::move(*rules);
  launch.command = std::move(command);
  for (std::string& warning :
       policy_warnings(launch.plan.options.failure_policy, launch.failure_rules))
    launch.plan.warnings.push_back(std::move(warning));
  if (launch.plan.options.dry_run) {
    return print(dry_run_text(launch.plan), 0);
  }
  GuardLink link = split_off_supervisor(stop_signals(launch.plan.options));
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
