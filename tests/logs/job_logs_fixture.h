// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <string>
#include <vector>

#include "logs/temp_dir.h"
#include "loop/loop_test.h"
#include "loop/timer.h"
#include "supervisor/logs/job_logs.h"

namespace muster {

// A job whose workers are shell scripts and whose consoles are files.
struct JobLogsTest : LoopTest {
  TempDir dir;
  LaunchPlan plan;
  JobLogs::Consoles consoles;
  UniqueFd in, out, err;
  std::unique_ptr<JobLogs> logs;
  std::map<int, int> closed, drained;
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
      kill(pid, SIGKILL);  // it may not lead a group yet
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
      callbacks.on_closed = [this](int rank) { ++closed[rank]; };
      callbacks.on_drained = [this](int rank) { ++drained[rank]; };
      callbacks.on_trouble = [this](const std::string& text) { troubles.push_back(text); };
      auto opened =
          JobLogs::open(loop, plan, callbacks, JobLogs::Consoles{in.get(), out.get(), err.get()});
      REQUIRE(opened.has_value());
      logs = std::move(*opened);
    }
    REQUIRE(logs->begin_attempt(attempt, 0).has_value());
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
    const pid_t pid = pids.at(rank);
    REQUIRE(run_until([&] {
      reaped = reaped || waitpid(pid, nullptr, WNOHANG) == pid;
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

}  // namespace muster
