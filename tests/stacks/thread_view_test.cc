// SPDX-License-Identifier: Apache-2.0
#include "supervisor/stacks/thread_view.h"

#include <signal.h>

#include "stacks/started_worker.h"

using namespace muster;

TEST_CASE("the kernel's stack is its functions without offsets") {
  CHECK(parse_kernel_stack("[<0>] futex_wait_queue+0x60/0x90\n[<0>] do_futex+0x1/0x2\n") ==
        std::vector<std::string>{"futex_wait_queue", "do_futex"});
  CHECK(parse_kernel_stack("[<0>] fuse_request_wait [fuse]\n") ==
        std::vector<std::string>{"fuse_request_wait"});
  CHECK(parse_kernel_stack("").empty());
  CHECK(parse_kernel_stack("rubbish\n]\n] ").size() <= 1);
}

TEST_CASE("a thread's call is named, and none is none") {
  CHECK(parse_system_call("0 0x3 0x7f20 0x20000 0x0 0x0 0x0 0x7ff 0x7f2\n") == "read");
  CHECK(parse_system_call("99999 0x0") == "system call 99999");
  CHECK(parse_system_call("running\n").empty());
  CHECK(parse_system_call("-1 0x7ffd 0x7f20\n").empty());
  CHECK(parse_system_call("").empty());
}

TEST_CASE("a worker that sleeps is seen asleep, with its children behind it") {
  testing::StartedWorker worker({"/bin/sh", "-c", "sleep 100 & wait"});
  RankView view;
  REQUIRE(worker.until([&] {
    view = view_rank(7, worker.pid);
    return view.processes.size() == 2 && !view.processes[0].threads.empty() &&
           !view.processes[1].threads.empty() && view.processes[1].name == "sleep" &&
           view.processes[0].threads[0].state == 'S' && view.processes[1].threads[0].state == 'S';
  }));
  CHECK(view.rank == 7);
  CHECK(view.processes[0].pid == worker.pid);
  CHECK(view.processes[0].threads[0].tid == worker.pid);
}

TEST_CASE("a stopped worker is seen stopped") {
  testing::StartedWorker worker({"/bin/sleep", "100"});
  ::kill(worker.pid, SIGSTOP);
  REQUIRE(worker.until([&] {
    const ProcessView view = view_process(worker.pid);
    return view.threads.size() == 1 && view.threads[0].state == 'T';
  }));
  CHECK(std::string(state_words('T')).find("SIGSTOP") != std::string::npos);
}

TEST_CASE("a process that is gone has no threads") {
  int pid = 0;
  {
    testing::StartedWorker worker({"/bin/true"});
    pid = worker.pid;
  }
  CHECK(view_process(pid).threads.empty());
}
