// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "nccl/core/operation.h"

// How operations, sizes and times are called in errors.
namespace muster::comm::detail {

std::string bytes_text(size_t bytes);              // "17 B", "4.2 MB": powers of 1000
std::string time_text(std::chrono::milliseconds);  // "250 ms", "1.5 s", "10 s", "12 min"

// What stands for an operation's size: what this rank puts in, or takes out where it puts nothing.
ConstBuffer size_buffer(const Operation& operation);

// "all_reduce #128 (4.2 MB float32)", "send #7 to rank 3 (16 B int8, tag 2)": ranks of the world.
std::string operation_text(const Operation& operation, uint64_t sequence,
                           std::span<const int> world_ranks);

// All that must agree: "all_reduce of 8 float32, sum", "broadcast of 3 int8, root 1".
std::string call_text(const Operation& operation, std::span<const int> world_ranks);

}  // namespace muster::comm::detail
