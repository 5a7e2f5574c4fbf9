// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>
#include <doctest/doctest.h>
#include <nccl.h>

#include <chrono>
#include <functional>
#include <thread>
#include <vector>

namespace doubles::test {

constexpr std::chrono::seconds kPatience{20};

// The state of a communicator that works in the background, once nothing is in progress.
inline ncclResult_t settled(ncclComm_t comm) {
  auto end = std::chrono::steady_clock::now() + kPatience;
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress && std::chrono::steady_clock::now() < end) {
    if (ncclCommGetAsyncError(comm, &state) != ncclSuccess) break;
    std::this_thread::yield();
  }
  return state;
}

// One rank: a thread with a device, a stream and a communicator of its own.
struct Rank {
  int rank = 0;
  int ranks = 1;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;

  template <typename T>
  T* device(const std::vector<T>& values) {
    void* memory = nullptr;
    size_t bytes = values.size() * sizeof(T);
    cudaMalloc(&memory, bytes);
    cudaMemcpy(memory, values.data(), bytes, cudaMemcpyHostToDevice);
    return static_cast<T*>(memory);
  }
  template <typename T>
  std::vector<T> values(const T* memory, size_t count) {
    cudaStreamSynchronize(stream);
    std::vector<T> values(count);
    cudaMemcpy(values.data(), memory, count * sizeof(T), cudaMemcpyDeviceToHost);
    return values;
  }
};

// Runs `body` as each rank of one communicator. What it has left of it is destroyed.
inline void in_threads(int ranks, const std::function<void(Rank&)>& body, bool blocking = true) {
  ncclUniqueId id;
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      Rank self{r, ranks};
      cudaSetDevice(r);
      cudaStreamCreateWithFlags(&self.stream, cudaStreamNonBlocking);
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = blocking;
      ncclResult_t begun = ncclCommInitRankConfig(&self.comm, ranks, id, r, &config);
      CHECK(begun == (blocking ? ncclSuccess : ncclInProgress));
      CHECK(settled(self.comm) == ncclSuccess);
      body(self);
      if (self.comm) CHECK(ncclCommDestroy(self.comm) == ncclSuccess);
      cudaStreamDestroy(self.stream);
    });
  }
  for (std::thread& thread : threads)
    thread.join();
}

}  // namespace doubles::test
