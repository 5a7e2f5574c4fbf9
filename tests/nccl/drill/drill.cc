// SPDX-License-Identifier: Apache-2.0
#include "nccl/drill/drill.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace muster::comm::test {
namespace {

using Clock = std::chrono::steady_clock;

long long since_ms(Clock::time_point start) {
  return std::chrono::duration_cast<milliseconds>(Clock::now() - start).count();
}

}  // namespace

Communicator Drill::all(milliseconds timeout, bool checked, std::string name) {
  CommunicatorOptions options;
  options.timeout = kLong;  // its making is not what is drilled
  options.checked = checked;
  options.name = std::move(name);
  options.operation_timeout = timeout;
  return world_.communicator(backend_, options).value();
}

TestBuffer& Drill::floats(size_t count) {
  TestBuffer& buffer = buffers_.emplace_back(backend_, count, DataType::kFloat32);
  buffer.fill(static_cast<float>(rank() + 1));
  return buffer;
}

void Drill::fails(const std::string& what, std::initializer_list<ErrorCode> codes, milliseconds by,
                  const Call& call, const std::string& says) {
  const Clock::time_point start = Clock::now();
  const Result<void> result = call();
  const long long took = since_ms(start);
  const char* code = result ? "success" : to_string(result.error().code);
  const std::string message = result ? "" : result.error().message;
  std::printf("rank %d: %s: %s after %lld ms: %s\n", rank(), what.c_str(), code, took,
              message.c_str());
  const bool expected =
      !result && std::find(codes.begin(), codes.end(), result.error().code) != codes.end();
  check(expected, what + " fails as it should");
  check(took <= (by + kGrace).count(), what + " fails by its deadline");
  check(result || !message.empty(), what + " says why");
  check(message.find(says) != std::string::npos, what + " says: " + says);
}

void Drill::succeeds(const std::string& what, const Call& call) {
  const Result<void> result = call();
  if (!result) std::printf("rank %d: %s\n", rank(), result.error().message.c_str());
  check(result.has_value(), what);
}

void Drill::check(bool condition, const std::string& what) {
  if (condition) return;
  std::printf("rank %d: NOT AS IT SHOULD BE: %s\n", rank(), what.c_str());
  std::fflush(stdout);
  good_ = false;
}

void Drill::works(Communicator& communicator) {
  TestBuffer& buffer = floats(257);
  succeeds("all_reduce of " + communicator.name(), [&] {
    return communicator.all_reduce(buffer, ReduceOp::kSum, {.timeout = kLong}).wait();
  });
  float sum = 0;
  for (const int member : communicator.ranks())
    sum += static_cast<float>(member + 1);
  const std::vector<float> values = buffer.values<float>();
  check(std::all_of(values.begin(), values.end(), [&](float v) { return v == sum; }),
        communicator.name() + " gives the right sum");
}

void Drill::meet(const std::string& place) {
  const std::string key = "drill/" + place;
  const int64_t arrived = world_.add(key, 1).value();
  if (arrived == size()) world_.set(key + "/all", "1").value();
  (void)world_.get(key + "/all", kLong).value();
}

void Drill::die() {
  std::fflush(stdout);
  kill(getpid(), SIGKILL);
  _exit(1);
}

void Drill::stop() {
  std::fflush(stdout);
  kill(getpid(), SIGSTOP);
  _exit(1);  // continued by nobody: the harness kills it
}

}  // namespace muster::comm::test
