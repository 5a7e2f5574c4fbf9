// SPDX-License-Identifier: Apache-2.0
#include "supervisor/sampling/life_look.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "sampling/ticking.h"

using namespace muster;

namespace {

// Real processes, looked at as the sampler does.
struct LifeLookTest : Ticking {
  std::vector<pid_t> started;

  ~LifeLookTest() {
    for (pid_t pid : started) {
      kill(-pid, SIGKILL);
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }

  pid_t start(const std::function<void()>& work) {
    const pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
      setpgid(0, 0);
      work();
      _exit(0);
    }
    setpgid(pid, pid);
    started.push_back(pid);
    return pid;
  }
  pid_t start(const std::string& script) {
    return start([script] { execl("/bin/sh", "sh", "-c", script.c_str(), nullptr); });
  }

  struct Look {
    ProcLook all;
    Clock::time_point at;
    std::optional<LifeDetail> detail;
  };
  static Look look(pid_t pid) {
    Look look{look_at_processes({pid}), Clock::now(), {}};
    look.detail = life_detail(pid, look.all.members[0]);
    return look;
  }
  // What is seen of it in about a second.
  Activity activity(pid_t pid) {
    const Look before = look(pid);
    run_until([] { return false; }, Milliseconds(1'000));
    const Look after = look(pid);
    const int64_t elapsed_us =
        std::chrono::duration_cast<std::chrono::microseconds>(after.at - before.at).count();
    const Activity by_use = activity_by_use(before.all.usage[0], after.all.usage[0], elapsed_us);
    return activity_in_detail(by_use, before.detail, after.detail, elapsed_us);
  }
  // It may still be starting.
  bool becomes(pid_t pid, std::initializer_list<Activity> wanted) {
    for (int i = 0; i < 10; ++i)
      if (std::count(wanted.begin(), wanted.end(), activity(pid)) > 0) return true;
    return false;
  }
  bool becomes(pid_t pid, Activity wanted) { return becomes(pid, {wanted}); }
  Waiting waiting(pid_t pid) { return how_it_waits(pid, look(pid).all.members[0]); }
};

void never() {
  for (;;)
    pause();
}

}  // namespace

TEST_CASE_FIXTURE(LifeLookTest, "a process that waits shows no life") {
  const pid_t pid = start(never);
  CHECK(becomes(pid, Activity::kNone));
  CHECK(waiting(pid).state == 'S');
}

TEST_CASE_FIXTURE(LifeLookTest, "one that wakes ten times a second to look at a flag neither") {
  CHECK(becomes(start([] {
                  for (;;)
                    usleep(100'000);
                }),
                Activity::kNone));
}

TEST_CASE_FIXTURE(LifeLookTest, "an endless loop spins") {
  const pid_t pid = start([] {
    for (volatile unsigned i = 0;;)
      i = i + 1;
  });
  // On a busy machine it gets little.
  CHECK(becomes(pid, {Activity::kSpins, Activity::kBetween}));
  CHECK(waiting(pid).state == 'R');
}

TEST_CASE_FIXTURE(LifeLookTest, "who reads and writes lives, however little it computes") {
  const pid_t pid = start([] {
    const int zero = open("/dev/zero", O_RDONLY);
    std::vector<char> bytes(65'536);
    while (read(zero, bytes.data(), bytes.size()) > 0)
      usleep(100'000);
  });
  CHECK(becomes(pid, Activity::kAlive));
}

TEST_CASE_FIXTURE(LifeLookTest, "who takes memory lives") {
  const pid_t pid = start([] {
    for (;;) {
      std::vector<char> bytes(size_t{4} << 20, 1);
      usleep(100'000);
    }
  });
  CHECK(becomes(pid, Activity::kAlive));
}

TEST_CASE_FIXTURE(LifeLookTest, "a stopped process is seen to be stopped") {
  const pid_t pid = start(never);
  kill(pid, SIGSTOP);
  CHECK(run_until([&] { return waiting(pid).state == 'T'; }));
  CHECK(becomes(pid, Activity::kNone));
}

TEST_CASE_FIXTURE(LifeLookTest, "the way into any system call is no place to wait in") {
  const pid_t pid = start("exec sleep 100");
  CHECK(run_until([&] { return waiting(pid).channel.find("sleep") != std::string::npos; }));
  kill(pid, SIGSTOP);
  CHECK(run_until([&] { return waiting(pid).state == 'T'; }));
  kill(pid, SIGCONT);
  // Begun anew it is seen where it was, or not at all.
  CHECK(run_until([&] { return waiting(pid).state == 'S'; }));
  const std::string channel = waiting(pid).channel;
  CAPTURE(channel);
  CHECK((channel.empty() || channel.find("sleep") != std::string::npos));
}

TEST_CASE_FIXTURE(LifeLookTest, "behind a shell the program counts, not the shell") {
  const pid_t pid = start("cat /dev/zero | sleep 100; true");
  // The shell waits for its children; there are two of them, so it stands for itself.
  CHECK(run_until([&] { return waiting(pid).channel == "do_wait"; }));
  const pid_t alone = start("sleep 100; true");
  CHECK(run_until([&] { return waiting(alone).channel.find("sleep") != std::string::npos; }));
  CHECK(waiting(alone).state == 'S');
}

TEST_CASE_FIXTURE(LifeLookTest, "a stopped descendant is not overlooked") {
  const pid_t pid = start("sleep 100 & kill -STOP $!; wait");
  CHECK(run_until([&] { return waiting(pid).state == 'T'; }));
}

TEST_CASE("a traceback at the end of stderr is one line") {
  const std::string text =
      "epoch 1\n"
      "Exception in thread Thread-1:\n"
      "Traceback (most recent call last):\n"
      "  File \"train.py\", line 41, in <module>\n"
      "    step()\n"
      "ValueError: bad shape\n";
  CHECK(traceback_at_end(text).find("ValueError: bad shape") == 0);
  CHECK(traceback_at_end(text + "one more line\n").find("ValueError") == 0);
  CHECK(traceback_at_end(text + "1\n2\n3\n4\n5\n6\n").empty());
  CHECK(traceback_at_end("epoch 1\nepoch 2\n").empty());
  CHECK(traceback_at_end("").empty());
  // However long the message.
  const std::string wordy = text.substr(0, text.size() - 1) + std::string(10'000, 'x') + "\n";
  CHECK(traceback_at_end(wordy).size() < 300);
}

TEST_CASE("of a process that is gone there is no detail") {
  CHECK_FALSE(life_detail(1 << 30, {{1 << 30, 1, 'S'}}).has_value());
  CHECK(how_it_waits(1 << 30, {}).state == 0);
}
