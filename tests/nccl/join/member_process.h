// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "loop/unique_fd.h"

namespace muster::comm {

// A program that is told what to do by lines and answers by lines (member.cc, or a script). Killed
// when it goes.
class MemberProcess {
 public:
  using Variables = std::map<std::string, std::string>;
  static constexpr std::chrono::seconds kPatience{60};

  // Variables are added to this process' environment; an empty value removes one.
  explicit MemberProcess(std::vector<std::string> command, const Variables& variables = {});
  ~MemberProcess();
  MemberProcess(const MemberProcess&) = delete;
  MemberProcess& operator=(const MemberProcess&) = delete;

  void say(const std::string& line);
  // The next line; "(end)" when there is no more, "(silence)" when it does not come in time.
  std::string next(std::chrono::milliseconds patience = kPatience);
  std::string ask(const std::string& line) { return say(line), next(); }

  void signal(int number);
  // Ends its input, and waits for its end. The exit code; 128 + the signal's number.
  int end();
  // Killed and reaped.
  void kill();

  pid_t pid() const { return pid_; }

 private:
  int reap();

  pid_t pid_ = -1;
  int code_ = -1;
  bool reaped_ = false;
  UniqueFd to_, from_;
  std::string pending_;
};

// A member.cc with these arguments.
std::unique_ptr<MemberProcess> start_member(const std::string& init_method, int timeout_ms,
                                            int rank, int size,
                                            const MemberProcess::Variables& variables = {});
// One whose rank and world size stand in its environment.
std::unique_ptr<MemberProcess> start_member(const std::string& init_method, int timeout_ms,
                                            const MemberProcess::Variables& variables);

// A TCP port where nobody listens now.
int free_port();

// A folder for this test's files, removed when it goes.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  std::string path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace muster::comm
