// SPDX-License-Identifier: Apache-2.0
#include "supervisor/stacks/own_child.h"

#include <dirent.h>
#include <doctest/doctest.h>
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>

#include "loop/fd_watch.h"
#include "loop/loop_test.h"
#include "supervisor/workers/worker_group.h"

using namespace muster;

namespace {

struct OwnChildTest : LoopTest {
  std::optional<OwnChild> child;
  Owned<FdWatch> watch;
  std::string text;
  bool ended = false;

  void start(const std::function<void(int)>& work) {
    auto started = OwnChild::start("own-child", work);
    REQUIRE(started.has_value());
    child.emplace(std::move(*started));
    auto watching =
        FdWatch::start(loop, child->output(), FdWatch::kReadable, [this](int) { read_some(); });
    REQUIRE(watching.has_value());
    watch = std::move(*watching);
  }
  void read_some() {
    char chunk[4096];
    const ssize_t got = ::read(child->output(), chunk, sizeof chunk);
    if (got > 0) text.append(chunk, static_cast<size_t>(got));
    if (got != 0) return;
    ended = true;
    watch->set_interest(0);
  }
  ~OwnChildTest() { watch.reset(); }
};

void say(int out, const std::string& text) {
  if (::write(out, text.data(), text.size()) < 0) ::_exit(1);
}

}  // namespace

TEST_CASE_FIXTURE(OwnChildTest, "what the child says arrives, and its end as the end of file") {
  start([](int out) { say(out, "hello"); });
  REQUIRE(run_until([this] { return ended; }));
  CHECK(text == "hello");
}

TEST_CASE_FIXTURE(OwnChildTest, "the child has no descriptor of ours") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);  // would be inherited
  start([](int out) {
    int count = 0;
    DIR* directory = ::opendir("/proc/self/fd");
    while (const dirent* entry = ::readdir(directory)) {
      if (entry->d_name[0] != '.') ++count;
    }
    say(out, std::to_string(count - 1));  // less the folder's own
  });
  REQUIRE(run_until([this] { return ended; }));
  CHECK(text == "4");
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE_FIXTURE(OwnChildTest,
                  "a child that hangs is killed with its owner, and leaves no zombie") {
  start([](int out) {
    say(out, std::to_string(::getpid()));
    for (;;)
      ::pause();
  });
  REQUIRE(run_until([this] { return !text.empty(); }));
  const int pid = std::stoi(text);
  watch.reset();
  child.reset();
  CHECK(::kill(pid, 0) == -1);
  CHECK(errno == ESRCH);
}

TEST_CASE_FIXTURE(OwnChildTest, "a worker group neither ends it nor waits for it") {
  start([](int out) {
    say(out, "ready");
    for (;;)
      ::pause();
  });
  REQUIRE(run_until([this] { return !text.empty(); }));
  bool gone = false;
  std::vector<event::LeftoverFound> found;
  WorkerGroup group(loop, {}, {nullptr, nullptr, [&](std::vector<event::LeftoverFound> leftovers) {
                                 found = std::move(leftovers);
                                 gone = true;
                               }});
  SpawnSpec spec;
  spec.executable = "/bin/true";
  spec.argv = {"true"};
  for (StdioSource& one : spec.stdio)
    one.kind = StdioSource::Kind::kNull;
  REQUIRE(group.spawn(0, spec).has_value());
  group.seal();
  // Well below what leftovers get.
  CHECK(loop.run_until([&] { return gone; }, Milliseconds(20'000)));
  CHECK(found.empty());
  CHECK_FALSE(ended);
}
