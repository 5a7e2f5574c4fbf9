// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "nccl/gloo/mesh.h"
#include "nccl/gloo/tags.h"

// Exchanges of our own over Gloo's connections, for what Gloo has no call for. They throw
// GlooFailure.
namespace muster::comm::detail {

// Everybody's part `rank` of `in`, reduced, becomes `out` on that rank; counts are elements. `out`
// may be that part of `in`.
//
// Each rank sends each other one the part that is its, directly. That is the least there can be to
// send, half of what an all_reduce sends (Gloo's own reduce_scatter is of its old kind, needs equal
// parts and a power of two of ranks). What comes is taken in pieces, of which one is reduced while
// the next is on its way.
struct PartsReduction {
  const void* in = nullptr;
  void* out = nullptr;
  std::span<const size_t> counts{};
  DataType type = DataType::kUint8;
  ReduceOp op = ReduceOp::kSum;
  uint32_t tag = 0;
};
void reduce_parts(Mesh& mesh, const PartsReduction& what, Deadline deadline);

// `mine`, counts[rank] elements, to the root, which puts all of them one after the other into
// `all`; its own is there already. Counts are bytes.
void gather_parts(Mesh& mesh, const void* mine, void* all, std::span<const size_t> bytes, int root,
                  uint32_t tag, Deadline deadline);

void all_to_all(Mesh& mesh, const Operation& operation, Deadline deadline);

// `count` in as many parts as there are ranks, the first ones greater by one where need be.
std::vector<size_t> even_parts(size_t count, int ranks);

}  // namespace muster::comm::detail
