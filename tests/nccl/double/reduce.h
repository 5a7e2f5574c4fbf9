// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nccl.h>

#include <cstddef>
#include <vector>

namespace doubles {

size_t size_of_type(ncclDataType_t type);

// How values become one: NCCL's five, or a sum of what each rank has multiplied by its own scalar.
struct Reduction {
  ncclRedOp_t op = ncclSum;  // one of the five
  bool multiply_first = false;
  std::vector<std::byte> scalar{};      // one element of the type
  const void* device_scalar = nullptr;  // or where it lies when the kernel runs
};

// This rank's contribution, ready to be sent.
std::vector<std::byte> contribution(const Reduction& reduction, ncclDataType_t type, int ranks,
                                    const void* in, size_t count);
// `inputs`: the same part of each rank's contribution, by rank. The order is the ranks', so that
// all ranks get the same bits.
void reduce(const Reduction& reduction, ncclDataType_t type,
            const std::vector<const std::byte*>& inputs, std::byte* out, size_t count);

}  // namespace doubles
