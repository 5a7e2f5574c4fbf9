// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/comm/communicator.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nccl/core/operation.h"

// What a call may ask for. Each answer is nothing, or kInvalidArgument that names the argument:
// "all_gather: out: 10 elements, it must be 12 (4 ranks, 3 each)".
namespace muster::comm::detail {

struct Caller {
  int rank = 0;
  int size = 1;
  Backend backend = Backend::kGloo;
};

// The operation as the caller gave it.
std::optional<Error> check_operation(const Operation& operation, const Caller& caller);

// Forgets the buffer that the operation does not use on this rank (`out` of a reduce on others than
// the root, say), so that nobody looks at it.
void drop_unused(Operation& operation, int rank);

std::optional<Error> check_counts(OpKind kind, const char* name, std::span<const size_t> counts,
                                  int size);

// Ranks of a communicator of `size` that make a new one: there, each once, and `rank` among them.
std::optional<Error> check_members(const char* call, std::span<const int> ranks, int size,
                                   int rank);
// Those that shrink() leaves out.
std::optional<Error> check_excluded(std::span<const int> excluded, int size, int rank);
// Those that grow() takes in, ranks of the world.
std::optional<Error> check_joining(std::span<const int> joining, std::span<const int> members,
                                   int world_size);
// `name` begins the message.
std::optional<Error> check_timeout(const std::string& name, Duration timeout);
std::optional<Error> check_options(const char* call, const CommunicatorOptions& options);

Error invalid(std::string message);

}  // namespace muster::comm::detail
