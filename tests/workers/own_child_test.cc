// SPDX-License-Identifier: Apache-2.0
#include "supervisor/workers/own_child.h"

#include <dirent.h>
#include <doctest/doctest.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iterator>
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

void say_descriptors(int out) {
  int count = 0;
  DIR* directory = ::opendir("/proc/self/fd");
  while (const dirent* entry = ::readdir(directory)) {
    if (entry->d_name[0] != '.') ++count;
  }
  say(out, std::to_string(count - 1));  // less the folder's own
}

// For good, in this process: what a container does whose filter does not know the call.
void refuse_close_range() {
  sock_filter steps[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 0, 1),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog filter{static_cast<unsigned short>(std::size(steps)), steps};
  rlimit few{256, 256};
  if (::setrlimit(RLIMIT_NOFILE, &few) != 0 || ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
    ::_exit(4);
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
  start(say_descriptors);
  REQUIRE(run_until([this] { return ended; }));
  CHECK(text == "4");
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("nor has it where no range of descriptors can be closed") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t pid = ::fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    refuse_close_range();
    auto child = OwnChild::start("own-child", say_descriptors);
    if (!child) ::_exit(2);
    pollfd readable{child->output(), POLLIN, 0};
    char told = 0;
    if (::poll(&readable, 1, 20'000) != 1 || ::read(child->output(), &told, 1) != 1) ::_exit(3);
    ::_exit(told == '4' ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  CHECK(status == 0);
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
