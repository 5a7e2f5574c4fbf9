// SPDX-License-Identifier: Apache-2.0
#include "nccl/gloo/ranks.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <stdexcept>

#include "loop/loop.h"
#include "loop/unique_fd.h"
#include "store/client.h"
#include "store/prefix_store.h"
#include "store/server.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

namespace muster::comm::detail {
namespace {

constexpr int kFailed = 3;

// Forks; the child calls the function, whose text goes through the pipe if it throws, and ends.
struct Child {
  pid_t pid = 0;
  UniqueFd text;
};

[[noreturn]] void be_child(int text, const std::function<void()>& function) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::string failure;
  try {
    function();
  } catch (const std::exception& error) {
    failure = error.what();
  }
#if defined(__SANITIZE_ADDRESS__)
  if (failure.empty() && __lsan_do_recoverable_leak_check() != 0) failure = "leaks memory";
#endif
  if (!failure.empty() && write(text, failure.data(), failure.size()) < 0) _exit(kFailed + 1);
  _exit(failure.empty() ? 0 : kFailed);
}

Child spawn(const std::function<void()>& function) {
  int fds[2];
  REQUIRE(pipe2(fds, O_CLOEXEC) == 0);
  UniqueFd read_end(fds[0]);
  UniqueFd write_end(fds[1]);
  std::fflush(nullptr);
  const pid_t pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) be_child(write_end.get(), function);
  return {pid, std::move(read_end)};
}

void serve_store(int port_pipe) {
  Loop loop;
  auto server = StoreServer::listen(loop, "127.0.0.1", 0, {[](const std::string&) {}});
  MUST(server.has_value());
  const int port = (*server)->port();
  MUST(write(port_pipe, &port, sizeof port) == sizeof port);
  loop.run();
}

// The text that a child left, and how it ended.
void judge(int rank, const Child& child, bool may_die, std::chrono::steady_clock::time_point end) {
  std::string text;
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd waiting{child.text.get(), POLLIN, 0};
    if (poll(&waiting, 1, static_cast<int>(std::max<int64_t>(left.count(), 0))) <= 0) {
      text += " (took too long, killed)";
      kill(child.pid, SIGKILL);
      break;
    }
    char buffer[4096];
    const ssize_t count = read(child.text.get(), buffer, sizeof buffer);
    if (count <= 0) break;
    text.append(buffer, static_cast<size_t>(count));
  }
  int status = 0;
  REQUIRE(waitpid(child.pid, &status, 0) == child.pid);
  if (WIFSIGNALED(status) && may_die && text.empty()) return;
  CHECK_MESSAGE(status == 0, "rank ", rank, " (status ", status, "): ", text);
}

}  // namespace

std::shared_ptr<muster::Store> RankPlace::store(const std::string& prefix) const {
  auto client = StoreClient::connect({"127.0.0.1", store_port, std::chrono::seconds(20), false});
  if (!client) throw std::runtime_error(client.error().message);
  return std::make_shared<PrefixStore>(prefix, std::move(*client));
}

BackendPlan RankPlace::plan(std::chrono::milliseconds timeout, const std::string& prefix) const {
  BackendPlan plan;
  plan.rank = rank;
  plan.size = size;
  for (int i = 0; i < size; ++i)
    plan.world_ranks.push_back(i + 10);
  plan.name = prefix;
  plan.store = store(prefix);
  plan.local_address = "127.0.0.1";
  plan.deadline = in(timeout);
  return plan;
}

std::unique_ptr<CommBackend> RankPlace::backend(std::chrono::milliseconds timeout,
                                                const std::string& prefix) const {
  return make_gloo_backend(plan(timeout, prefix)).value();
}

void RankPlace::meet(const std::string& name, int others_missing) const {
  const auto here = store("meet");
  const auto met = here->barrier(name, size - others_missing, std::chrono::seconds(30));
  expect(met.has_value(), "meeting at " + name);
}

void run_ranks(int size, const std::function<void(const RankPlace&)>& function,
               const std::vector<int>& may_die, std::chrono::seconds limit) {
  int fds[2];
  REQUIRE(pipe2(fds, O_CLOEXEC) == 0);
  const UniqueFd port_read(fds[0]);
  UniqueFd port_write(fds[1]);
  const Child store = spawn([&] { serve_store(port_write.get()); });
  RankPlace place;
  place.size = size;
  REQUIRE(read(port_read.get(), &place.store_port, sizeof(int)) == sizeof(int));

  const auto end = std::chrono::steady_clock::now() + limit;
  std::vector<Child> children;
  for (place.rank = 0; place.rank < size; ++place.rank) {
    children.push_back(spawn([&] { function(place); }));
    place.pids.push_back(children.back().pid);
  }
  for (int rank = 0; rank < size; ++rank) {
    const bool may = std::ranges::find(may_die, rank) != may_die.end();
    judge(rank, children[static_cast<size_t>(rank)], may, end);
  }
  kill(store.pid, SIGKILL);
  waitpid(store.pid, nullptr, 0);
}

void expect(bool good, const std::string& text) {
  if (!good) throw std::runtime_error(text);
}

Deadline in(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

}  // namespace muster::comm::detail
