// SPDX-License-Identifier: Apache-2.0
#include "supervisor/stacks/native_stacks.h"

#include <signal.h>

#include <algorithm>

#include "stacks/started_worker.h"
#include "supervisor/stacks/held_thread.h"

using namespace muster;

namespace {

const NativeFrame* frame_of(const ThreadView& thread, const std::string& function) {
  for (const NativeFrame& frame : thread.native)
    if (short_function_name(frame.function) == function) return &frame;
  return nullptr;
}

// The threads of a worker that waits, spins and is locked out, once each is where it belongs.
ProcessView seen(const testing::StartedWorker& worker) {
  ProcessView view;
  const bool there = worker.until([&] {
    view = view_process(worker.pid);
    if (view.threads.size() < 3) return false;
    NativeStacks().add(view);
    return frame_of(view.threads[0], "stay") != nullptr &&
           frame_of(view.threads[1], "take_lock") != nullptr &&
           frame_of(view.threads[2], "spin") != nullptr;
  });
  REQUIRE(there);
  return view;
}

}  // namespace

TEST_CASE("each thread's own calls are named, down to where it began") {
  testing::StartedWorker worker({MUSTER_HELPERS "/hang_in_threads"});
  const ProcessView view = seen(worker);
  CHECK(frame_of(view.threads[0], "main") != nullptr);
  CHECK(frame_of(view.threads[0], "stay")->source.starts_with("hang_in_threads.cc:"));
  CHECK(frame_of(view.threads[0], "stay")->module == "hang_in_threads");
  for (const ThreadView& thread : view.threads)
    CHECK(thread.native_trouble == "");
}

TEST_CASE("the worker runs on as if nothing had been") {
  testing::StartedWorker worker({MUSTER_HELPERS "/hang_in_threads"});
  seen(worker);
  for (const char state : {'S', 'S', 'R'}) {
    CHECK(worker.until([&] {
      const ProcessView view = view_process(worker.pid);
      return std::any_of(view.threads.begin(), view.threads.end(),
                         [&](const ThreadView& thread) { return thread.state == state; });
    }));
  }
}

TEST_CASE("a stopped worker's stacks are read, and it stays stopped") {
  testing::StartedWorker worker({MUSTER_HELPERS "/hang_in_threads"});
  seen(worker);
  ::kill(worker.pid, SIGSTOP);
  REQUIRE(worker.until([&] { return view_process(worker.pid).threads[0].state == 'T'; }));
  ProcessView view = view_process(worker.pid);
  NativeStacks().add(view);
  CHECK(frame_of(view.threads[0], "stay") != nullptr);
  CHECK(worker.until([&] { return view_process(worker.pid).threads[0].state == 'T'; }));
  ::kill(worker.pid, SIGCONT);
  CHECK(worker.until([&] { return view_process(worker.pid).threads[0].state == 'S'; }));
}

TEST_CASE("a signal that comes while it is looked at is not lost") {
  for (int i = 0; i < 20; ++i) {
    testing::StartedWorker worker({MUSTER_HELPERS "/exit_on_signal", "7"});
    REQUIRE(worker.until([&] { return view_process(worker.pid).threads[0].state == 'S'; }));
    ProcessView view = view_process(worker.pid);
    ::kill(worker.pid, SIGTERM);
    NativeStacks().add(view);
    CHECK(worker.until([&] {
      const std::optional<ProcStat> now = read_proc_stat(worker.pid);
      return !now || now->state == 'Z';  // we are its parent, too, and may have reaped it
    }));
  }
}

TEST_CASE("a process that is gone, or not ours to see, has a reason instead") {
  ProcessView view;
  view.pid = 1 << 30;
  view.threads.push_back({});
  view.threads[0].tid = view.pid;
  NativeStacks().add(view);
  CHECK(view.threads[0].native.empty());
  CHECK(view.threads[0].native_trouble == "it is gone");
}

TEST_CASE("where a mapping ends is found by an address in it") {
  const char* maps =
      "55d0c000-55d0d000 r-xp 00000000 08:01 42 /bin/a b\n"
      "7ffc0000-7ffc8000 rw-p 00000000 00:00 0 [stack]\n";
  CHECK(mapping_end(maps, 0x55d0c000) == 0x55d0d000);
  CHECK(mapping_end(maps, 0x7ffc7fff) == 0x7ffc8000);
  CHECK(mapping_end(maps, 0x7ffc8000) == 0);
  CHECK(mapping_end("rubbish\n\n-\n", 1) == 0);
}

TEST_CASE("a function's short name has no parameters and no templates") {
  CHECK(short_function_name("main") == "main");
  CHECK(short_function_name("a::b(int, char const*)") == "a::b");
  CHECK(short_function_name("void a::b<int, std::vector<int>>::c<3>(int)") == "a::b::c");
  CHECK(short_function_name("(anonymous namespace)::f(int)") == "(anonymous namespace)::f");
  CHECK(short_function_name("A::operator()(int) const") == "A::operator()");
  CHECK(short_function_name("") == "");
}
