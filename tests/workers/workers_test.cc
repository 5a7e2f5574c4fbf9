// SPDX-License-Identifier: Apache-2.0
#include "workers/workers_test.h"

#include <dirent.h>
#include <doctest/doctest.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "loop/timer.h"
#include "supervisor/workers/proc_fs.h"

namespace muster {

std::string helper(const std::string& name) {
  return std::string(MUSTER_HELPERS) + "/" + name;
}

std::vector<int> marked_processes(const std::string& value) {
  const std::string wanted = std::string(kMark) + "=" + value;
  std::vector<int> pids;
  DIR* proc = opendir("/proc");
  while (const dirent* entry = readdir(proc)) {
    const int pid = std::atoi(entry->d_name);
    if (pid <= 0 || pid == getpid()) continue;
    auto environment = read_proc_file("/proc/" + std::to_string(pid) + "/environ");
    if (!environment || environment->find(wanted) == std::string::npos) continue;
    auto stat = read_proc_stat(pid);
    if (stat && stat->state != 'Z' && stat->state != 'X') pids.push_back(pid);
  }
  closedir(proc);
  return pids;
}

SpawnSpec helper_spec(const std::string& mark, const std::string& name,
                      const std::vector<std::string>& args) {
  SpawnSpec spec;
  spec.executable = helper(name);
  spec.argv = {name};
  spec.argv.insert(spec.argv.end(), args.begin(), args.end());
  spec.environment = {std::string(kMark) + "=" + mark};
  for (StdioSource& source : spec.stdio)
    source.kind = StdioSource::Kind::kNull;
  return spec;
}

Reader::Reader(Loop& loop) {
  int fds[2];
  REQUIRE(pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0);
  reader_.reset(fds[0]);
  writer_.reset(fds[1]);
  REQUIRE(fcntl(writer_.get(), F_SETFL, 0) == 0);
  auto watch = FdWatch::start(loop, reader_.get(), FdWatch::kReadable, [this](int) {
    char chunk[4096];
    ssize_t got = read(reader_.get(), chunk, sizeof chunk);
    if (got > 0) {
      text_.append(chunk, static_cast<size_t>(got));
    } else if (got == 0 || errno != EAGAIN) {
      ended_ = true;
      watch_->set_interest(0);
    }
  });
  REQUIRE(watch.has_value());
  watch_ = std::move(*watch);
}

WorkersTest::WorkersTest() {
  static int counter = 0;
  mark = std::to_string(getpid()) + "." + std::to_string(++counter);
  REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
}

WorkersTest::~WorkersTest() {
  group.reset();
  const std::vector<int> left = marked_processes(mark);
  CHECK(left.empty());
  for (int pid : left)
    kill(pid, SIGKILL);
  // The group reaps all of its own; a zombie here is one that it forgot.
  CHECK(waitpid(-1, nullptr, WNOHANG) == -1);
  while (waitpid(-1, nullptr, 0) > 0) {
  }
}

bool WorkersTest::run_until(const std::function<bool()>& done, Milliseconds deadline) {
  Owned<Timer> tick = Timer::repeat(loop, Milliseconds(10), [] {});
  return LoopTest::run_until(done, deadline);
}

void WorkersTest::make_group(WorkerGroup::Limits limits) {
  WorkerGroup::Callbacks callbacks;
  callbacks.on_exit = [this](const WorkerEnd& end) { ends.push_back(end); };
  callbacks.on_signal_sent = [this](const SentSignal& signal) { sent.push_back(signal); };
  callbacks.on_gone = [this](std::vector<event::LeftoverFound> leftovers) {
    CHECK_FALSE(gone);
    gone = true;
    found = std::move(leftovers);
  };
  group = std::make_unique<WorkerGroup>(loop, limits, std::move(callbacks));
}

int WorkersTest::start(int local_rank, const std::string& name,
                       const std::vector<std::string>& args) {
  auto pid = group->spawn(local_rank, helper_spec(mark, name, args));
  REQUIRE(pid.has_value());
  return *pid;
}

int WorkersTest::start_ready(int local_rank, const std::string& name,
                             const std::vector<std::string>& args) {
  readers.push_back(std::make_unique<Reader>(loop));
  Reader* reader = readers.back().get();
  SpawnSpec spec = helper_spec(mark, name, args);
  spec.stdio[1].kind = StdioSource::Kind::kFd;
  spec.stdio[1].fd = reader->writer();
  auto pid = group->spawn(local_rank, std::move(spec));
  REQUIRE(pid.has_value());
  reader->close_writer();
  REQUIRE(run_until([&] { return reader->has("ready\n"); }));
  return *pid;
}

bool WorkersTest::run_until_gone() {
  return run_until([&] { return gone; });
}

const WorkerEnd* WorkersTest::end_of(int local_rank) const {
  for (const WorkerEnd& end : ends) {
    if (end.local_rank == local_rank) return &end;
  }
  return nullptr;
}

int WorkersTest::signals_sent(int pid, int signal) const {
  int count = 0;
  for (const SentSignal& one : sent)
    count += one.pid == pid && one.signal == signal;
  return count;
}

}  // namespace muster
