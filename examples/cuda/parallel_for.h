// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

template <typename F>
__global__ void run_parallel_for(size_t count, F body) {
  const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) body(i);
}

// body(0) to body(count - 1), each by a thread of the GPU, when their turn on the stream comes.
template <typename F>
void parallel_for(cudaStream_t stream, size_t count, F body) {
  constexpr unsigned kThreads = 256;
  if (count == 0) return;
  const auto blocks = static_cast<unsigned>((count + kThreads - 1) / kThreads);
  run_parallel_for<<<blocks, kThreads, 0, stream>>>(count, body);
}
