// SPDX-License-Identifier: Apache-2.0
//
// Workers' streams and muster's own stdin, stdout and stderr.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "logs/job_logs_fixture.h"
#include "logs/stalled_file.h"

namespace muster {

namespace {

// muster's own terminal: what the user sees and types at.
struct UserTerminal {
  UniqueFd master, slave;
  UserTerminal() {
    master.reset(posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
    REQUIRE((grantpt(master.get()) == 0 && unlockpt(master.get()) == 0));
    slave.reset(open(ptsname(master.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
    struct winsize size = {30, 97, 0, 0};
    REQUIRE(ioctl(slave.get(), TIOCSWINSZ, &size) == 0);
  }
};

}  // namespace

TEST_CASE_FIXTURE(JobLogsTest, "a stdin rank inherits stdin and the others read nothing") {
  write_file(dir.path + "/in", "input\n");
  in.reset(open((dir.path + "/in").c_str(), O_RDONLY | O_CLOEXEC));
  plan.options.stdin_rank = 1;
  begin(2);
  start(0, "cat");
  start(1, "cat");
  end(0);
  end(1);
  CHECK(log(0).empty());
  CHECK(log(1) == "input\n");
}

TEST_CASE_FIXTURE(JobLogsTest, "both consoles at one place share their lines") {
  err.reset(dup(out.get()));
  begin(1);
  auto wait_for = [this](const std::string& text) {
    return "while ! grep -q " + text + " " + dir.path + "/out; do sleep 0.01; done; ";
  };
  start(0, "printf partial; " + wait_for("partial") + "echo error >&2; " + wait_for("error") +
               "echo rest");
  end(0);
  logs->say("muster: done");
  finish();
  CHECK(console_out() == "partial\nerror\nrest\nmuster: done\n");
}

TEST_CASE_FIXTURE(JobLogsTest, "on one console a worker's two streams keep their order") {
  err.reset(dup(out.get()));
  in.reset();
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  in.reset(ends[0]);
  UniqueFd go(ends[1]);
  begin(1);
  start(0, "while read -r i; do echo out $i; echo err $i >&2; done");
  std::string expected;
  for (int i = 0; i < 100; ++i) {
    std::string line = std::to_string(i) + "\n";
    REQUIRE(write(go.get(), line.data(), line.size()) > 0);
    expected += "out " + line + "err " + line;
    REQUIRE(run_until([&] { return console_out().size() >= expected.size(); }));
    REQUIRE(console_out() == expected);
  }
  go.reset();
  end(0);
}

TEST_CASE_FIXTURE(JobLogsTest, "a stream whose file is slow holds up what came after it") {
  err.reset(dup(out.get()));
  plan.options.tee = "3";
  begin(1);
  StalledFile slow(logs->run_dir() + "/attempt_0/0/stdout.log");
  start(0, "echo out; echo err >&2");
  reap(0);
  logs->worker_ended(0, Milliseconds(10'000));
  REQUIRE(run_until([&] { return log(0, Stream::kStderr) == "err\n"; }));
  CHECK(console_out().empty());
  std::string written;
  REQUIRE(run_until([&] {
    written += slow.take();
    return drained[0] == 1;
  }));
  finish();
  CHECK(written == "out\n");
  CHECK(console_out() == "[default0]:out\n[default0]:err\n");
}

TEST_CASE_FIXTURE(JobLogsTest, "a stuck console does not hold the end up") {
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  UniqueFd unread(ends[0]);
  out.reset(ends[1]);
  begin(1);
  start(0, "i=0; while [ $i -lt 100 ]; do printf '%65536d\\n' $i; i=$((i+1)); done");
  end(0);
  bool done = false;
  logs->finish(Milliseconds(50), [&] { done = true; });
  CHECK(run_until([&] { return done; }));
  CHECK(std::filesystem::file_size(logs->log_file(0, Stream::kStdout)) == 100 * 65537);
}

TEST_CASE_FIXTURE(JobLogsTest, "with pseudo-terminals both streams are terminals and stay apart") {
  UserTerminal terminal;
  in.reset(dup(terminal.slave.get()));
  plan.options.pty = true;
  plan.options.tee = "3";
  begin(2);
  start(1, "test -t 1 && test -t 2 && echo yes; stty size <&1; echo err >&2");
  end(1);
  finish();
  CHECK(log(1) == "yes\n30 97\n");
  CHECK(log(1, Stream::kStderr) == "err\n");
  CHECK(console_out() == "[default1]:yes\n[default1]:30 97\n");
}

TEST_CASE_FIXTURE(JobLogsTest, "a pseudo-terminal follows the size of the user's window") {
  UserTerminal terminal;
  in.reset(dup(terminal.slave.get()));
  plan.options.pty = true;
  begin(1);
  start(0, "trap 'stty size <&1' WINCH; while :; do echo drawing; sleep 0.01; done");
  REQUIRE(run_until([&] { return log(0).find("drawing") != std::string::npos; }));
  struct winsize size = {31, 132, 0, 0};
  REQUIRE(ioctl(terminal.slave.get(), TIOCSWINSZ, &size) == 0);
  // In a job the terminal signals its controlling session; this worker asks for itself.
  REQUIRE(run_until([&] {
    kill(pids[0], SIGWINCH);
    return log(0).find("31 132\n") != std::string::npos;
  }));
  kill(pids[0], SIGKILL);
  end(0);
}

TEST_CASE_FIXTURE(JobLogsTest, "what is typed reaches the stdin rank's pseudo-terminal") {
  UserTerminal terminal;
  in.reset(dup(terminal.slave.get()));
  plan.options.pty = true;
  begin(2);
  start(0, "test -t 0 && echo terminal; while read -r line; do echo \"got $line\"; done; echo end");
  start(1, "cat");
  REQUIRE(write(terminal.master.get(), "one\ntwo\n", 8) == 8);
  REQUIRE(run_until([&] { return log(0).find("got two\n") != std::string::npos; }));
  REQUIRE(write(terminal.master.get(), "\x04", 1) == 1);  // end of file, as typed
  end(0);
  end(1);
  CHECK(log(0) == "terminal\ngot one\ngot two\nend\n");
  CHECK(log(1).empty());
}

}  // namespace muster
