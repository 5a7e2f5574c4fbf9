// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "loop/fd_watch.h"
#include "loop/loop_test.h"
#include "loop/unique_fd.h"
#include "supervisor/workers/worker_group.h"

namespace muster {

// The path of a program from tests/helpers.
std::string helper(const std::string& name);

// How many living processes (zombies aside) carry `variable`=`value` in their environment.
std::vector<int> marked_processes(const std::string& value);
inline constexpr const char* kMark = "MUSTER_TEST_MARK";

// A spec that runs a helper with the mark in its environment and nothing on its stdio.
SpawnSpec helper_spec(const std::string& mark, const std::string& name,
                      const std::vector<std::string>& args = {});

// A pipe whose far end a helper writes to.
class Reader {
 public:
  explicit Reader(Loop& loop);
  int writer() const { return writer_.get(); }
  void close_writer() { writer_.reset(); }
  const std::string& text() const { return text_; }
  bool ended() const { return ended_; }
  bool has(const std::string& part) const { return text_.find(part) != std::string::npos; }

 private:
  UniqueFd reader_, writer_;
  std::string text_;
  bool ended_ = false;
  Owned<FdWatch> watch_;
};

// A worker group on real processes: this process becomes a subreaper, and after each test no
// process with its mark may be left, nor a zombie.
struct WorkersTest : LoopTest {
  WorkersTest();
  ~WorkersTest();

  // Also looks again now and then, for what no event of this loop tells.
  bool run_until(const std::function<bool()>& done, Milliseconds deadline = Milliseconds(20'000));

  void make_group(WorkerGroup::Limits limits = {});
  // Starts a helper as the worker of `local_rank`.
  int start(int local_rank, const std::string& name, const std::vector<std::string>& args = {});
  // Starts it and waits until it has printed "ready".
  int start_ready(int local_rank, const std::string& name,
                  const std::vector<std::string>& args = {});
  bool run_until_gone();
  const WorkerEnd* end_of(int local_rank) const;
  int signals_sent(int pid, int signal) const;

  std::string mark;
  std::vector<WorkerEnd> ends;
  std::vector<SentSignal> sent;
  std::vector<event::LeftoverFound> found;
  bool gone = false;
  std::vector<std::unique_ptr<Reader>> readers;  // of start_ready, in order
  std::unique_ptr<WorkerGroup> group;
};

}  // namespace muster
