// SPDX-License-Identifier: Apache-2.0
#include "supervisor/workers/guard.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loop/timer.h"
#include "supervisor/workers/proc_fs.h"
#include "workers/workers_test.h"

namespace muster {

namespace {

// A guarded_job under way. It must not be our descendant's descendant once its front is killed, so
// the tests look for its mark, not for children.
struct GuardTest : WorkersTest {
  std::unique_ptr<Reader> out, err;
  int front = 0;
  int supervisor = 0;

  ~GuardTest() {
    for (int pid : marked_processes(mark))
      kill(pid, SIGKILL);
    // The front's death gives the supervisor to us, the subreaper of this test.
    while (waitpid(-1, nullptr, 0) > 0) {
    }
  }

  // Starts it and waits until `count` workers have said "ready".
  void start_job(int count, const std::string& program, const std::vector<std::string>& args = {}) {
    out = std::make_unique<Reader>(loop);
    err = std::make_unique<Reader>(loop);
    std::vector<std::string> all{std::to_string(count), helper(program)};
    all.insert(all.end(), args.begin(), args.end());
    SpawnSpec spec = helper_spec(mark, "guarded_job", all);
    spec.stdio[1] = {StdioSource::Kind::kFd, out->writer(), ""};
    spec.stdio[2] = {StdioSource::Kind::kFd, err->writer(), ""};
    auto spawned = spawn(spec);
    REQUIRE(spawned.has_value());
    out->close_writer();
    err->close_writer();
    front = spawned->pid;
    REQUIRE(run_until([&] { return ready_workers() == count && out->has("started\n"); }));
    int front_said = 0;
    REQUIRE(sscanf(out->text().c_str(), "front %d supervisor %d", &front_said, &supervisor) == 2);
    CHECK(front_said == front);
  }

  int ready_workers() const {
    int count = 0;
    for (size_t at = 0; (at = out->text().find("ready\n", at)) != std::string::npos; ++at)
      ++count;
    return count;
  }

  int wait_for_front() {
    int status = -1;
    int waited = 0;
    REQUIRE(run_until([&] {
      if (waited == 0) waited = waitpid(front, &status, WNOHANG);
      return waited != 0;
    }));
    CHECK(waited == front);
    front = 0;
    return status;
  }

  bool nothing_left() {
    return run_until([&] { return marked_processes(mark).empty(); });
  }
};

}  // namespace

TEST_CASE_FIXTURE(GuardTest, "the front ends with the supervisor's exit status") {
  start_job(1, "exit_on_signal", {"0"});
  kill(front, SIGTERM);
  const int status = wait_for_front();
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 128 + SIGTERM);
  CHECK(out->has("signal 15 by " + std::to_string(getpid())));
  CHECK(nothing_left());
}

TEST_CASE_FIXTURE(GuardTest,
                  "a signal comes with the name of the user and the command that sent it") {
  start_job(1, "exit_on_signal", {"0"});
  kill(front, SIGUSR1);
  const std::string user = user_name(getuid(), read_proc_file("/etc/passwd").value_or(""));
  CHECK(run_until([&] { return out->has("(" + user + ", workers_tests)\n"); }));
  // The worker got it, and it changed nothing else.
  CHECK(run_until([&] { return out->has("signal 10\n"); }));
  kill(front, SIGINT);
  CHECK(WEXITSTATUS(wait_for_front()) == 128 + SIGINT);
}

TEST_CASE_FIXTURE(GuardTest, "one signal to both processes is one signal") {
  start_job(1, "ignore_term");
  kill(front, SIGTERM);
  kill(supervisor, SIGTERM);
  kill(front, SIGUSR2);
  REQUIRE(run_until([&] { return out->has("signal 12 by"); }));
  const size_t first = out->text().find("signal 15 by");
  CHECK(first != std::string::npos);
  CHECK(out->text().find("signal 15 by", first + 1) == std::string::npos);
  kill(front, SIGTERM);
  CHECK(WEXITSTATUS(wait_for_front()) == 128 + SIGTERM);
}

TEST_CASE_FIXTURE(GuardTest, "a signal to the supervisor itself counts too") {
  start_job(1, "exit_on_signal", {"0"});
  kill(supervisor, SIGTERM);
  CHECK(WEXITSTATUS(wait_for_front()) == 128 + SIGTERM);
}

TEST_CASE_FIXTURE(GuardTest, "who looks for the program or its arguments finds the front alone") {
  start_job(1, "ignore_term");
  const std::string folder = "/proc/" + std::to_string(supervisor);
  CHECK(read_proc_file(folder + "/comm") == "mstr-supervisor\n");
  const std::string command = read_proc_file(folder + "/cmdline").value_or("");
  CHECK(command.c_str() == "mstr-supervisor of " + std::to_string(front));
  CHECK(command.find("ignore_term") == std::string::npos);
  const std::string of_front =
      read_proc_file("/proc/" + std::to_string(front) + "/cmdline").value_or("");
  CHECK(of_front.find("ignore_term") != std::string::npos);
  kill(front, SIGKILL);
  CHECK(nothing_left());
}

TEST_CASE_FIXTURE(GuardTest, "kill -9 of the front leaves nothing") {
  start_job(3, "leave_behind", {"di", "stay"});
  // The process between a worker and its daemon may be about to end.
  CHECK(run_until([&] { return marked_processes(mark).size() == 8; }));
  kill(front, SIGKILL);
  CHECK(WTERMSIG(wait_for_front()) == SIGKILL);
  CHECK(nothing_left());
}

TEST_CASE_FIXTURE(GuardTest, "kill -9 of the front's whole process group leaves nothing") {
  start_job(3, "leave_behind", {"i", "stay"});
  kill(-getpgid(front), SIGKILL);
  CHECK(nothing_left());
}

TEST_CASE_FIXTURE(GuardTest, "kill -9 of the supervisor leaves nothing, and the front says so") {
  start_job(3, "leave_behind", {"di", "stay"});
  kill(supervisor, SIGKILL);
  const int status = wait_for_front();
  CHECK(WEXITSTATUS(status) == 128 + SIGKILL);
  CHECK(marked_processes(mark).empty());
  CHECK(run_until([&] { return err->ended(); }));
  CHECK(err->text() ==
        "muster: the supervisor was killed by SIGKILL (signal 9); every worker was ended\n");
}

TEST_CASE_FIXTURE(GuardTest, "a supervisor that hangs is ended when somebody asks twice") {
  start_job(2, "leave_behind", {"di", "stay"});
  kill(supervisor, SIGSTOP);
  kill(front, SIGTERM);
  // Again and again: the front becomes impatient after some seconds, and not at once.
  Owned<Timer> again = Timer::repeat(loop, Milliseconds(500), [&] { kill(front, SIGTERM); });
  int status = 0;
  REQUIRE(run_until([&] {
    if (front != 0 && waitpid(front, &status, WNOHANG) == front) {
      front = 0;
      again.reset();
    }
    return front == 0;
  }));
  CHECK(WEXITSTATUS(status) == 128 + SIGKILL);
  CHECK(marked_processes(mark).empty());
  CHECK(run_until([&] { return err->ended(); }));
  CHECK(err->text() ==
        "muster: the supervisor did not answer and was ended; every worker was ended\n");
}

TEST_CASE_FIXTURE(GuardTest, "the front's own children from before are left alone") {
  // As `sleep 1000 & exec muster ...` in a shell does.
  out = std::make_unique<Reader>(loop);
  SpawnSpec spec;
  spec.executable = "/bin/sh";
  spec.argv = {"sh",
               "-c",
               "sleep 1000 & echo sleep $!; exec \"$@\"",
               "sh",
               helper("guarded_job"),
               "1",
               helper("ignore_term")};
  spec.environment = {std::string(kMark) + "=" + mark, "PATH=/usr/bin:/bin"};
  spec.stdio[0].kind = StdioSource::Kind::kNull;
  spec.stdio[1] = {StdioSource::Kind::kFd, out->writer(), ""};
  spec.stdio[2].kind = StdioSource::Kind::kNull;
  auto spawned = spawn(spec);
  REQUIRE(spawned.has_value());
  out->close_writer();
  REQUIRE(run_until([&] { return ready_workers() == 1 && out->has("started\n"); }));
  int sleeper = 0;
  REQUIRE(sscanf(out->text().c_str(), "sleep %d", &sleeper) == 1);
  const size_t line = out->text().find("front");
  REQUIRE(sscanf(out->text().c_str() + line, "front %d supervisor %d", &front, &supervisor) == 2);
  kill(supervisor, SIGKILL);
  wait_for_front();
  CHECK(marked_processes(mark) == std::vector<int>{sleeper});
  kill(sleeper, SIGKILL);
}

TEST_CASE_FIXTURE(GuardTest, "of the signals ignored at start only a hang-up stays ignored") {
  struct Case {
    const char* trap;
    int sent;
    bool relayed;
  };
  for (const Case& it : {Case{"trap '' HUP", SIGHUP, false}, Case{":", SIGHUP, true},
                         Case{"trap '' INT", SIGINT, true}}) {
    CAPTURE(it.trap);
    // spawn() resets dispositions, so let a shell ignore it as nohup does.
    out = std::make_unique<Reader>(loop);
    SpawnSpec spec;
    spec.executable = "/bin/sh";
    spec.argv = {"sh",
                 "-c",
                 std::string(it.trap) + "; exec \"$@\"",
                 "sh",
                 helper("guarded_job"),
                 "1",
                 helper("exit_on_signal"),
                 "0"};
    spec.environment = {std::string(kMark) + "=" + mark, "PATH=/usr/bin:/bin"};
    spec.stdio[0].kind = StdioSource::Kind::kNull;
    spec.stdio[1] = {StdioSource::Kind::kFd, out->writer(), ""};
    spec.stdio[2].kind = StdioSource::Kind::kNull;
    auto spawned = spawn(spec);
    REQUIRE(spawned.has_value());
    out->close_writer();
    front = spawned->pid;
    REQUIRE(run_until([&] { return ready_workers() == 1; }));
    kill(front, it.sent);
    if (!it.relayed) {
      // What came after it arrives, so the signal itself never will.
      kill(front, SIGUSR1);
      REQUIRE(run_until([&] { return out->has("signal 10 by"); }));
      kill(front, SIGTERM);
    }
    const int status = wait_for_front();
    CHECK(WEXITSTATUS(status) == 128 + (it.relayed ? it.sent : SIGTERM));
    CHECK(out->has("signal " + std::to_string(it.sent) + " by") == it.relayed);
  }
}

TEST_CASE("user names come from the passwd file alone") {
  const char* passwd =
      "root:x:0:0:root:/root:/bin/bash\nbroken\nshort:x\nalice:x:1000:1000::/home/alice:/bin/sh";
  CHECK(user_name(0, passwd) == "root");
  CHECK(user_name(1000, passwd) == "alice");
  CHECK(user_name(100, passwd).empty());
  CHECK(user_name(0, "").empty());
}

}  // namespace muster
