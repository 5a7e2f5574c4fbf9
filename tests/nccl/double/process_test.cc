// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <nccl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

// double_process with variables in its environment ("A=1"). It is killed in the end.
class Process {
 public:
  Process(std::vector<std::string> words, const std::vector<std::string>& variables = {}) {
    std::array<int, 2> pipe_ends{};
    REQUIRE(pipe(pipe_ends.data()) == 0);
    words.insert(words.begin(), DOUBLE_PROCESS);
    pid_ = fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      dup2(pipe_ends[1], STDOUT_FILENO);
      for (const std::string& variable : variables)
        putenv(strdup(variable.c_str()));
      std::vector<char*> argv;
      argv.reserve(words.size() + 1);
      for (std::string& word : words)
        argv.push_back(word.data());
      argv.push_back(nullptr);
      execv(argv[0], argv.data());
      _exit(127);
    }
    close(pipe_ends[1]);
    out_ = fdopen(pipe_ends[0], "r");
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    fclose(out_);
  }

  // What it printed, to its end.
  std::string output() {
    std::string text;
    for (int c = fgetc(out_); c != EOF; c = fgetc(out_))
      text += static_cast<char>(c);
    return text;
  }

 private:
  pid_t pid_ = -1;
  FILE* out_ = nullptr;
};

std::string new_id() {
  ncclUniqueId id;
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  std::string hex;
  for (char byte : id.internal) {
    char text[3];
    std::snprintf(text, sizeof text, "%02x", static_cast<unsigned char>(byte));
    hex += text;
  }
  return hex;
}

// Rank 0's output of two processes of that mode.
std::string rank_0_of_two(const std::string& mode, const std::vector<std::string>& variables = {}) {
  std::string id = new_id();
  Process first({mode, id, "0", "2"}, variables);
  Process second({mode, id, "1", "2"});
  return first.output();
}

}  // namespace

TEST_CASE("processes compute together, by an id that another process made") {
  CHECK(rank_0_of_two("sum") == "3\n");
}

TEST_CASE("a killed peer is a remote error; the kernel runs until the abort") {
  CHECK(rank_0_of_two("die") ==
        "remote process exited or there was a network error, cudaErrorNotReady\n"
        "aborted, cudaSuccess\n");
}

TEST_CASE("a stopped peer is no error; the kernel runs until the abort") {
  CHECK(rank_0_of_two("stop") == "no error, cudaErrorNotReady\naborted, cudaSuccess\n");
}

TEST_CASE("devices, driver and version are what the environment says") {
  CHECK(Process({"count"}, {"DOUBLE_DEVICES=3"}).output() == "3 cudaSuccess\n");
  CHECK(Process({"count"}, {"CUDA_VISIBLE_DEVICES=1,2"}).output() == "2 cudaSuccess\n");
  CHECK(Process({"count"}, {"CUDA_VISIBLE_DEVICES="}).output() == "0 cudaErrorNoDevice\n");
  CHECK(Process({"count"}, {"DOUBLE_DRIVER_VERSION=12020"}).output() ==
        "0 cudaErrorInsufficientDriver\n");
  CHECK(Process({"version"}).output() == "22809\n");
  CHECK(Process({"version"}, {"DOUBLE_NCCL_VERSION=22005"}).output() == "22005\n");
}

TEST_CASE("what the init says of a driver that is not there, and of a wrong interface") {
  CHECK(Process({"sum", new_id(), "0", "1"}, {"DOUBLE_DRIVER_VERSION=0"}).output() ==
        "init: unhandled cuda error (run with NCCL_DEBUG=INFO for details) (Cuda failure 'CUDA "
        "driver version is insufficient for CUDA runtime version')\n");
  CHECK(Process({"sum", new_id(), "0", "1"}, {"NCCL_SOCKET_IFNAME=none0"}).output() ==
        "init: invalid usage (run with NCCL_DEBUG=WARN for details) (Bootstrap : no socket "
        "interface found)\n");
}

TEST_CASE("faults: a call that fails, a kernel with an error, a device that fails for good") {
  CHECK(rank_0_of_two("sum", {"DOUBLE_FAULTS=ncclAllReduce:fail=2@1"})
            .find("all_reduce: unhandled system error") == 0);
  CHECK(rank_0_of_two("async", {"DOUBLE_FAULTS=kernel:fail=3@2"}) ==
        "internal error - please report this issue to the NCCL developers, cudaErrorNotReady\n"
        "aborted, cudaSuccess\n");
  CHECK(rank_0_of_two("sum", {"DOUBLE_FAULTS=task:fail=700@2"}) == "cudaErrorIllegalAddress\n");
}
