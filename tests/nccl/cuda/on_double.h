// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "nccl/core/backend.h"
#include "nccl/gloo/ranks.h"
#include "nccl/memory.h"

// The NCCL backend in processes of their own, over the stand-ins for NCCL and the CUDA runtime.
namespace muster::comm::detail {

enum class Nccl { kToday, kOld, kNew };  // 2.28.9, 2.18.3, 2.29.2

// To be called before the first call of the library: opens the stand-ins. `faults` as in
// tests/nccl/double/faults.h.
void use_double(Nccl version = Nccl::kToday, const std::string& faults = {});

// run_ranks(), each rank on its own device of the stand-in, its backend not made yet.
using OnRank = std::function<void(const RankPlace&)>;

BackendPlan plan_of(const RankPlace& place,
                    std::chrono::milliseconds timeout = std::chrono::seconds(20),
                    const std::string& prefix = "test");
std::unique_ptr<CommBackend> make_backend(
    const RankPlace& place, std::chrono::milliseconds timeout = std::chrono::seconds(20));

inline std::vector<int> filled(size_t count, int value) {
  return std::vector<int>(count, value);
}

// How many communicators the stand-in has that were not freed.
int comms_left();

// An operation's buffers must outlive it.
class Device {
 public:
  explicit Device(std::vector<int> values);
  std::vector<int> values() const { return buffer_.values<int>(); }
  operator Buffer() { return buffer_.buffer(); }
  operator ConstBuffer() { return buffer_.buffer(); }

 private:
  test::TestBuffer buffer_;
};

Operation operation(OpKind kind, ConstBuffer in, Buffer out, int root = 0,
                    ReduceOp op = ReduceOp::kSum);
// Begins it and waits for it.
Result<void> run(CommBackend& backend, std::span<const Operation> operations,
                 std::chrono::milliseconds time = std::chrono::seconds(20));
inline Result<void> run(CommBackend& backend, const Operation& operation,
                        std::chrono::milliseconds time = std::chrono::seconds(20)) {
  return run(backend, {&operation, 1}, time);
}
void expect_values(const Device& got, const std::vector<int>& wanted, const std::string& what);
// An all_reduce gives the right sum: the communicator works.
void expect_works(CommBackend& backend, int size, const std::string& what);

// That it failed with this code, and what it said.
template <typename T>
std::string expect_error(const Result<T>& result, ErrorCode code, const std::string& what) {
  expect(!result, what + ": must fail");
  expect(result.error().code == code,
         what + ": " + to_string(result.error().code) + ": " + result.error().message);
  return result.error().message;
}
void expect_says(const std::string& message, const std::string& part);

// That the function took at most this long, and gives what it gives.
template <typename Function>
auto within(std::chrono::milliseconds limit, const std::string& what, Function function) {
  const auto begin = std::chrono::steady_clock::now();
  auto result = function();
  const auto took = std::chrono::steady_clock::now() - begin;
  expect(took <= limit,
         what + ": took " +
             std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(took).count()) +
             " ms");
  return result;
}

}  // namespace muster::comm::detail
