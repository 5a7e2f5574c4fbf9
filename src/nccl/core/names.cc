// SPDX-License-Identifier: Apache-2.0
#include <muster/comm/communicator.h>

#include <array>

#include "nccl/core/operation.h"

namespace muster::comm {
namespace {

template <typename Enum, size_t N>
const char* pick(const std::array<const char*, N>& names, Enum value) {
  const auto index = static_cast<size_t>(value);
  return index < N ? names[index] : "unknown";
}

}  // namespace

const char* to_string(ErrorCode code) {
  static constexpr std::array<const char*, 10> kNames = {
      "invalid_argument", "timeout",     "peer_lost", "aborted", "mismatch",
      "store_lost",       "unavailable", "nccl",      "cuda",    "system"};
  return pick(kNames, code);
}

const char* to_string(DataType type) {
  static constexpr std::array<const char*, kDataTypes> kNames = {
      "int8",   "uint8",   "int32",   "uint32",  "int64",
      "uint64", "float16", "float32", "float64", "bfloat16"};
  return pick(kNames, type);
}

const char* to_string(ReduceOp op) {
  static constexpr std::array<const char*, 5> kNames = {"sum", "product", "min", "max", "average"};
  return pick(kNames, op);
}

const char* to_string(Backend backend) {
  static constexpr std::array<const char*, 2> kNames = {"gloo", "nccl"};
  return pick(kNames, backend);
}

namespace detail {

const char* to_string(OpKind kind) {
  static constexpr std::array<const char*, kOpKinds> kNames = {
      "send",   "recv",       "broadcast",      "reduce",     "all_reduce", "scatter",
      "gather", "all_gather", "reduce_scatter", "all_to_all", "barrier"};
  return pick(kNames, kind);
}

}  // namespace detail
}  // namespace muster::comm
