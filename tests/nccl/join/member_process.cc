// SPDX-License-Identifier: Apache-2.0
#include "nccl/join/member_process.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "loop/socket_address.h"

namespace muster::comm {

namespace {

std::vector<std::string> environment_with(const MemberProcess::Variables& variables) {
  std::vector<std::string> list;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string entry = *at;
    if (!variables.contains(entry.substr(0, entry.find('=')))) list.push_back(entry);
  }
  for (const auto& [name, value] : variables)
    if (!value.empty()) list.push_back(name + "=" + value);
  return list;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  list.reserve(texts.size() + 1);
  for (std::string& text : texts)
    list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

}  // namespace

MemberProcess::MemberProcess(std::vector<std::string> command, const Variables& variables) {
  int in[2], out[2];
  // Not a pipe: writing to one whose reader is gone would be a signal.
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) == 0);
  REQUIRE(pipe2(out, O_CLOEXEC) == 0);
  const UniqueFd its_input(in[0]), its_output(out[1]);
  to_.reset(in[1]);
  from_.reset(out[0]);
  std::vector<std::string> environment = environment_with(variables);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, its_input.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, its_output.get(), STDOUT_FILENO);
  const int failed = posix_spawnp(&pid_, command[0].c_str(), &actions, nullptr,
                                  pointers(command).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  REQUIRE(failed == 0);
}

MemberProcess::~MemberProcess() {
  if (!reaped_) kill();
}

void MemberProcess::say(const std::string& line) {
  const std::string text = line + "\n";
  const ssize_t sent = ::send(to_.get(), text.data(), text.size(), MSG_NOSIGNAL);
  CHECK(sent == static_cast<ssize_t>(text.size()));
}

std::string MemberProcess::next(std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    if (const size_t end = pending_.find('\n'); end != std::string::npos) {
      std::string line = pending_.substr(0, end);
      pending_.erase(0, end + 1);
      return line;
    }
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd poller{from_.get(), POLLIN, 0};
    if (left.count() <= 0 || ::poll(&poller, 1, static_cast<int>(left.count())) == 0)
      return "(silence)";
    char bytes[4096];
    const ssize_t got = ::read(from_.get(), bytes, sizeof bytes);
    if (got <= 0) return "(end)";
    pending_.append(bytes, static_cast<size_t>(got));
  }
}

void MemberProcess::signal(int number) {
  ::kill(pid_, number);
}

int MemberProcess::reap() {
  if (reaped_) return code_;
  int status = 0;
  REQUIRE(waitpid(pid_, &status, 0) == pid_);
  reaped_ = true;
  code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return code_;
}

int MemberProcess::end() {
  to_.reset();
  return reap();
}

void MemberProcess::kill() {
  if (reaped_) return;
  ::kill(pid_, SIGKILL);
  reap();
}

std::unique_ptr<MemberProcess> start_member(const std::string& init_method, int timeout_ms,
                                            int rank, int size,
                                            const MemberProcess::Variables& variables) {
  return std::make_unique<MemberProcess>(
      std::vector<std::string>{MUSTER_JOIN_MEMBER, init_method, std::to_string(timeout_ms),
                               std::to_string(rank), std::to_string(size)},
      variables);
}

std::unique_ptr<MemberProcess> start_member(const std::string& init_method, int timeout_ms,
                                            const MemberProcess::Variables& variables) {
  return std::make_unique<MemberProcess>(
      std::vector<std::string>{MUSTER_JOIN_MEMBER, init_method, std::to_string(timeout_ms)},
      variables);
}

int free_port() {
  const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  SocketAddress any = *SocketAddress::parse("127.0.0.1", 0);
  REQUIRE(bind(fd.get(), any.raw(), any.size()) == 0);
  return SocketAddress::local(fd.get()).port();
}

ScratchFolder::ScratchFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "muster-join-XXXXXX").string();
  REQUIRE(mkdtemp(pattern.data()) != nullptr);
  path_ = pattern;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace muster::comm
