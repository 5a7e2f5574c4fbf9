// SPDX-License-Identifier: Apache-2.0
#include "supervisor/logs/job_logs.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <vector>

#include "logs/temp_dir.h"
#include "loop/loop_test.h"
#include "loop/timer.h"

namespace muster {

namespace {

// A job whose workers are shell scripts and whose consoles are files.
struct JobLogsTest : LoopTest {
  TempDir dir;
  LaunchPlan plan;
  JobLogs::Consoles consoles;
  UniqueFd in, out, err;
  std::unique_ptr<JobLogs> logs;
  std::map<int, int> drained;
  std::vector<std::pair<int, Stream>> first_outputs;
  std::vector<std::string> troubles;
  std::map<int, pid_t> pids;

  JobLogsTest() {
    plan.options.log_dir = dir.path + "/logs";
    plan.run_id = "run";
    plan.host = "host";
    out.reset(open((dir.path + "/out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    err.reset(open((dir.path + "/err").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    in.reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
  }
  ~JobLogsTest() {
    for (auto [rank, pid] : pids) {
      kill(-pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }

  void begin(int workers, int attempt = 0) {
    if (!logs) {
      plan.workers.resize(static_cast<size_t>(workers));
      JobLogs::Callbacks callbacks;
      callbacks.on_first_output = [this](int rank, Stream stream) {
        first_outputs.emplace_back(rank, stream);
      };
      callbacks.on_drained = [this](int rank) { ++drained[rank]; };
      callbacks.on_trouble = [this](const std::string& text) { troubles.push_back(text); };
      auto opened =
          JobLogs::open(loop, plan, callbacks, JobLogs::Consoles{in.get(), out.get(), err.get()});
      REQUIRE(opened.has_value());
      logs = std::move(*opened);
    }
    REQUIRE(logs->begin_attempt(attempt).has_value());
  }

  static int descriptor(const StdioSource& source, int inherited) {
    switch (source.kind) {
      case StdioSource::Kind::kInherit:
        return inherited;
      case StdioSource::Kind::kNull:
        return open("/dev/null", O_RDWR);
      case StdioSource::Kind::kFd:
        return source.fd;
      case StdioSource::Kind::kFile:
        return open(source.path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    }
    return -1;
  }

  void start(int rank, const std::string& script) {
    auto stdio = logs->open_worker(rank);
    REQUIRE(stdio.has_value());
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
      setsid();
      int inherited[3] = {in.get(), out.get(), err.get()};
      int fds[3];
      for (size_t i = 0; i < 3; ++i)
        fds[i] = dup(descriptor((*stdio)[i], inherited[i]));
      for (int i = 0; i < 3; ++i)
        dup2(fds[i], i);
      for (int fd = 3; fd < 256; ++fd)
        close(fd);
      execl("/bin/sh", "sh", "-c", script.c_str(), nullptr);
      _exit(127);
    }
    pids[rank] = pid;
    logs->worker_started(rank, pid);
  }

  // Waits for the main process, then for its streams.
  void end(int rank, Milliseconds bound = Milliseconds(10'000)) {
    reap(rank);
    logs->worker_ended(rank, bound);
    CHECK(run_until([&] { return drained[rank] == 1; }));
  }
  void reap(int rank) {
    bool reaped = false;
    REQUIRE(run_until([&] {
      reaped = reaped || waitpid(pids[rank], nullptr, WNOHANG) == pids[rank];
      return reaped;
    }));
    pids.erase(rank);
  }
  // The loop sleeps until something happens; a child's end is nothing to it here.
  bool run_until(const std::function<bool()>& done, Milliseconds deadline = Milliseconds(20'000)) {
    Owned<Timer> tick = Timer::repeat(loop, Milliseconds(2), [] {});
    return loop.run_until(done, deadline);
  }
  void finish() {
    bool done = false;
    logs->finish(Milliseconds(5'000), [&] { done = true; });
    REQUIRE(run_until([&] { return done; }));
  }
  std::string console_out() { return read_file(dir.path + "/out"); }
  std::string console_err() { return read_file(dir.path + "/err"); }
  std::string log(int rank, Stream stream = Stream::kStdout) {
    return read_file(logs->log_file(rank, stream));
  }
};

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

TEST_CASE_FIXTURE(JobLogsTest, "one worker: its bytes are on the consoles and in its files") {
  begin(1);
  start(0, "printf 'a\\nb'; printf 'e\\n' >&2");
  end(0);
  finish();
  CHECK(console_out() == "a\nb");
  CHECK(console_err() == "e\n");
  CHECK(log(0) == "a\nb");
  CHECK(log(0, Stream::kStderr) == "e\n");
  CHECK(logs->tail(0, Stream::kStdout) == "a\nb");
  CHECK(first_outputs.size() == 2);
  CHECK(logs->log_file(0, Stream::kStdout) == logs->run_dir() + "/attempt_0/0/stdout.log");
  CHECK(logs->error_file(0) == logs->run_dir() + "/attempt_0/0/error.json");
}

TEST_CASE_FIXTURE(JobLogsTest, "teed streams have torchrun's prefix, redirected ones no console") {
  plan.options.tee = "0:1";
  plan.options.redirects = "1:1";
  begin(2);
  start(0, "echo zero");
  start(1, "echo one; echo err >&2");
  end(0);
  end(1);
  finish();
  CHECK(console_out() == "[default0]:zero\n");
  CHECK(console_err() == "[1]: err\n");
  CHECK(log(1) == "one\n");
  CHECK(logs->tail(1, Stream::kStdout) == "one\n");
}

TEST_CASE_FIXTURE(JobLogsTest, "every attempt has its own folder and the earlier one stays") {
  begin(1);
  start(0, "echo first");
  end(0);
  std::string before = logs->log_file(0, Stream::kStdout);
  begin(1, 1);
  start(0, "echo second");
  reap(0);
  logs->worker_ended(0, Milliseconds(10'000));
  CHECK(run_until([&] { return drained[0] == 2; }));
  CHECK(read_file(before) == "first\n");
  CHECK(log(0) == "second\n");
}

TEST_CASE_FIXTURE(JobLogsTest, "nothing that a worker wrote before SIGKILL is missing") {
  plan.options.tee = "1";
  begin(1);
  start(0, "i=0; while [ $i -lt 20000 ]; do echo \"line $i\"; i=$((i+1)); done; kill -9 $$");
  end(0);
  finish();
  std::string text = log(0);
  CHECK(text.ends_with("line 19999\n"));
  CHECK(std::count(text.begin(), text.end(), '\n') == 20'000);
  std::string shown = console_out();
  CHECK(std::count(shown.begin(), shown.end(), '\n') == 20'000);
  CHECK(shown.ends_with("[default0]:line 19999\n"));
}

TEST_CASE_FIXTURE(JobLogsTest, "many noisy workers lose nothing in files and in a console file") {
  plan.options.tee = "1";
  begin(6);
  for (int rank = 0; rank < 6; ++rank)
    start(rank, "yes 'a line of a noisy worker' | head -n 300000");
  for (int rank = 0; rank < 6; ++rank)
    end(rank);
  finish();
  for (int rank = 0; rank < 6; ++rank)
    CHECK(std::filesystem::file_size(logs->log_file(rank, Stream::kStdout)) == 300'000 * 25);
  CHECK(console_out().size() == 6 * 300'000 * (25 + 11));
}

TEST_CASE_FIXTURE(JobLogsTest, "output of a child that outlives the worker is kept") {
  begin(1);
  start(0, "(sleep 0.3; echo late) & echo early");
  end(0);
  finish();
  CHECK(log(0) == "early\nlate\n");
}

TEST_CASE_FIXTURE(JobLogsTest,
                  "a descendant that keeps the pipe holds the end up for the bound only") {
  begin(1);
  start(0, "echo said; sleep 1000 & echo $! >" + dir.path + "/pid");
  end(0, Milliseconds(100));
  CHECK(log(0) == "said\n");
  kill(std::atoi(read_file(dir.path + "/pid").c_str()), SIGKILL);
}

TEST_CASE_FIXTURE(JobLogsTest,
                  "a descendant that never stops writing holds the end up for the bound only") {
  plan.options.console = ConsoleMode::kNone;
  plan.options.log_limit = 1 << 20;
  begin(1);
  start(0, "yes & echo $! >" + dir.path + "/pid");
  end(0, Milliseconds(100));
  kill(std::atoi(read_file(dir.path + "/pid").c_str()), SIGKILL);
}

TEST_CASE_FIXTURE(JobLogsTest, "bytes stay bytes in the file") {
  begin(1);
  start(0, "printf '\\000\\377\\r\\n\\r50%%\\r100%%\\n\\303'; sleep 0.05; printf '\\244\\n'");
  end(0);
  CHECK(log(0) == std::string("\0\xff\r\n\r50%\r100%\n\xc3\xa4\n", 17));
}

TEST_CASE_FIXTURE(JobLogsTest, "without a log folder the console is all there is") {
  plan.options.log_dir = "/dev/null";
  plan.options.redirects = "3";
  plan.options.tee = "3";
  plan.options.duplicate_stdout_filters = {"x"};
  begin(2);
  start(0, "echo zero");
  end(0);
  finish();
  CHECK(console_out() == "[default0]:zero\n");
  CHECK(logs->run_dir().empty());
  CHECK(logs->error_file(0).empty());
  CHECK(logs->log_file(0, Stream::kStdout).empty());
}

TEST_CASE_FIXTURE(JobLogsTest, "filters collect matching lines of teed streams with their prefix") {
  plan.options.tee = "1";
  plan.options.duplicate_stdout_filters = {"1/1", "zz"};
  plan.options.duplicate_stderr_filters = {""};
  begin(2);
  start(0, "echo 'step 1/1'; echo no; printf 'zz at the end'; echo err >&2");
  start(1, "sleep 0.2; echo 'rank one 1/1'");
  end(0);
  end(1);
  finish();
  std::string attempt = logs->run_dir() + "/attempt_0";
  CHECK(read_file(attempt + "/filtered_stdout.log") ==
        "[default0]:step 1/1\n[default0]:zz at the end\n[default1]:rank one 1/1\n");
  CHECK(std::filesystem::exists(attempt + "/filtered_stderr.log"));
  CHECK(read_file(attempt + "/filtered_stderr.log").empty());
}

TEST_CASE_FIXTURE(JobLogsTest,
                  "each attempt has its own filter files, and the old ones are complete") {
  plan.options.tee = "1";
  plan.options.duplicate_stdout_filters = {"x"};
  begin(1);
  start(0, "echo x1");
  end(0);
  std::string before = logs->run_dir() + "/attempt_0/filtered_stdout.log";
  begin(1, 1);
  finish();
  CHECK(read_file(before) == "[default0]:x1\n");
  CHECK(read_file(logs->run_dir() + "/attempt_1/filtered_stdout.log").empty());
}

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

TEST_CASE_FIXTURE(JobLogsTest, "a full disk is said once and the console goes on") {
  begin(1);
  std::string path = logs->run_dir() + "/attempt_0/0/stdout.log";
  REQUIRE(symlink("/dev/full", path.c_str()) == 0);
  start(0, "echo one; sleep 0.1; echo two");
  end(0);
  finish();
  CHECK(console_out() == "one\ntwo\n");
  REQUIRE(troubles.size() == 2);
  CHECK(troubles[0].find(path) != std::string::npos);
  CHECK(troubles[0].find("No space left") != std::string::npos);
  CHECK(troubles[1].find("lacks 8 bytes") != std::string::npos);
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

TEST_CASE_FIXTURE(JobLogsTest, "a worker that was not started leaves no descriptor") {
  begin(2);
  int before = dup(0);
  close(before);
  REQUIRE(logs->open_worker(0).has_value());
  logs->worker_not_started(0);
  int after = dup(0);
  close(after);
  CHECK(after == before);
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
