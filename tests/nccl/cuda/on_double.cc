// SPDX-License-Identifier: Apache-2.0
#include "nccl/cuda/on_double.h"

#include <dlfcn.h>

#include <cstdlib>

namespace muster::comm::detail {
namespace {

const char* library(Nccl version) {
  switch (version) {
    case Nccl::kToday:
      return MUSTER_NCCL_DOUBLE;
    case Nccl::kOld:
      return MUSTER_NCCL_DOUBLE_OLD;
    case Nccl::kNew:
      return MUSTER_NCCL_DOUBLE_NEW;
  }
  return "";
}

}  // namespace

void use_double(Nccl version, const std::string& faults) {
  setenv("MUSTER_CUDART_LIBRARY", MUSTER_CUDART_DOUBLE, 1);
  setenv("MUSTER_NCCL_LIBRARY", library(version), 1);
  setenv("DOUBLE_FAULTS", faults.c_str(), 1);
}

BackendPlan plan_of(const RankPlace& place, std::chrono::milliseconds timeout,
                    const std::string& prefix) {
  BackendPlan plan = place.plan(timeout, prefix);
  plan.local_rank = place.rank;
  return plan;
}

std::unique_ptr<CommBackend> make_backend(const RankPlace& place,
                                          std::chrono::milliseconds timeout) {
  return make_nccl_backend(plan_of(place, timeout)).value();
}

int comms_left() {
  void* const library = dlopen(std::getenv("MUSTER_NCCL_LIBRARY"), RTLD_NOW | RTLD_NOLOAD);
  expect(library != nullptr, "the stand-in is open");
  void* const count = dlsym(library, "doubleCommsLeft");
  dlclose(library);  // it stays open for the backend
  expect(count != nullptr, "it counts");
  return reinterpret_cast<int (*)()>(count)();
}

Device::Device(std::vector<int> values) : buffer_(Backend::kNccl, values.size(), DataType::kInt32) {
  buffer_.upload(std::as_bytes(std::span(values)));
}

Operation operation(OpKind kind, ConstBuffer in, Buffer out, int root, ReduceOp op) {
  Operation operation;
  operation.kind = kind;
  operation.reduce = op;
  operation.root_or_peer = root;
  operation.in = in;
  operation.out = out;
  return operation;
}

Result<void> run(CommBackend& backend, std::span<const Operation> operations,
                 std::chrono::milliseconds time) {
  Result<std::shared_ptr<Pending>> pending = backend.start(operations, in(time));
  if (!pending) return pending.error();
  const std::optional<Result<void>> ended = (*pending)->wait(in(time));
  if (!ended) return Error{.code = ErrorCode::kTimeout, .message = "still under way"};
  return *ended;
}

void expect_values(const Device& got, const std::vector<int>& wanted, const std::string& what) {
  const std::vector<int> values = got.values();
  std::string text = what + ": got";
  for (const int value : values)
    text += " " + std::to_string(value);
  expect(values == wanted, text);
}

void expect_works(CommBackend& backend, int size, const std::string& what) {
  Device ones(filled(3, 1));
  const Result<void> done = run(backend, operation(OpKind::kAllReduce, {}, ones));
  expect(done.has_value(), what + ": " + (done ? "" : done.error().message));
  expect_values(ones, filled(3, size), what);
}

void expect_says(const std::string& message, const std::string& part) {
  expect(message.find(part) != std::string::npos, "says: " + message);
}

}  // namespace muster::comm::detail
