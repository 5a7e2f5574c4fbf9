// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <optional>

namespace doubles {

// A piece of memory that CUDA knows of. It all lies in the host's memory; what makes it the
// device's is that it stands in this list.
struct Block {
  const std::byte* begin = nullptr;
  size_t size = 0;
  cudaMemoryType type = cudaMemoryTypeDevice;
  int device = 0;
  bool owned = true;  // ours to free; otherwise the user's, registered
};

// Filled with 0xff (not a number, -1), so that who reads what nobody wrote notices. nullptr: the
// device's memory is used up.
void* allocate(size_t bytes, cudaMemoryType type);
// false: no such beginning of a block of that type.
bool release(void* begin, cudaMemoryType type);
bool add_registered(void* begin, size_t bytes);
bool remove_registered(void* begin);

std::optional<Block> find_block(const void* pointer);
// Whether a kernel can read and write these bytes.
bool device_can_reach(const void* pointer, size_t bytes);

}  // namespace doubles
