// SPDX-License-Identifier: Apache-2.0
// A worker that uses its page as it is told: `page_worker WHAT...`, one after the other.
#include <muster/comm/record.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "nccl/report/own_page.h"
#include "nccl/report/page_writer.h"

namespace {

using namespace muster::comm;  // NOLINT(google-build-using-namespace): a program of ours

constexpr int kForked = 1000;  // the step that only a child reports

bool wait_for(pid_t child) {
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// The child of a fork goes on with the library as if nothing had been.
int in_forked_child(detail::PageBlock& inherited) {
  inherited.end(inherited.begin({}), true);
  report_progress({kForked});
  detail::PageBlock own({.id = 99, .name = "child"});
  own.end(own.begin({}), true);
  return detail::own_page_is_shared() || detail::own_page().progress.step != kForked ? 1 : 0;
}

bool fork_one() {
  detail::PageBlock block({.id = 7, .name = "parent"});
  const auto slot = block.begin({});
  const pid_t child = fork();
  if (child == 0) _exit(in_forked_child(block));
  const bool well = wait_for(child);
  block.end(slot, true);
  return well;
}

// A program that the worker starts, a data loader say, has its environment.
bool start_other(char* program) {
  const pid_t child = fork();
  if (child == 0) {
    char step[] = "step=1000";
    char private_page[] = "private";
    char* const arguments[] = {program, step, private_page, nullptr};
    execv(program, arguments);
    _exit(127);
  }
  return wait_for(child);
}

bool run(const std::string& what, char** rest, char* program) {
  if (what.starts_with("step=")) report_progress({std::atoi(what.c_str() + 5)});
  if (what == "shared") return detail::own_page_is_shared();
  if (what == "private") return !detail::own_page_is_shared();
  if (what == "fork") return fork_one();
  if (what == "other") return start_other(program);
  if (what == "open") new detail::PageBlock({.id = 5, .name = "left open"});
  if (what == "closed") detail::PageBlock({.id = 6, .name = "closed"}).close();
  if (what == "world") detail::set_world(3, 8);
  if (what == "exec") {
    *--rest = program;
    execv(program, rest);
    return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; i++) {
    // As it was called: after exec, too.
    if (!run(argv[i], argv + i + 1, argv[0])) _exit(i);
  }
  _exit(0);  // "open" is meant to be left
}
