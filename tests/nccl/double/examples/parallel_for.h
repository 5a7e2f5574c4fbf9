// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <utility>

// In the place of examples/cuda/parallel_for.h: the same, on the stream of the test double.
template <typename F>
void parallel_for(cudaStream_t stream, size_t count, F body) {
  using Task = std::pair<size_t, F>;
  auto run = [](void* data) {
    auto* task = static_cast<Task*>(data);
    for (size_t i = 0; i < task->first; ++i)
      task->second(i);
    delete task;
  };
  auto* task = new Task(count, body);
  if (cudaLaunchHostFunc(stream, run, task) != cudaSuccess) delete task;
}
