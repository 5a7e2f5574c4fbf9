// SPDX-License-Identifier: Apache-2.0
// One rank as a process of its own, or a question to the library: what it prints is compared.
//   double_process count | version
//   double_process sum|die|stop|stay ID RANK RANKS
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

namespace {

void must(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  std::printf("%s: %s (%s)\n", what, ncclGetErrorString(result), ncclGetLastError(nullptr));
  std::exit(1);
}

ncclUniqueId read_id(const std::string& hex) {
  ncclUniqueId id{};
  for (size_t i = 0; i < sizeof id.internal; ++i) {
    id.internal[i] = static_cast<char>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
  }
  return id;
}

int ask(const std::string& what) {
  int number = 0;
  if (what == "version") {
    ncclGetVersion(&number);
    return std::printf("%d\n", number), 0;
  }
  cudaError_t error = cudaGetDeviceCount(&number);
  std::printf("%d %s\n", number, cudaGetErrorName(error));
  return 0;
}

// What becomes of the second all_reduce, in which the other rank takes no part.
void wait_alone(ncclComm_t comm, bool expect_error) {
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  ncclResult_t state = ncclSuccess;
  while (expect_error && state == ncclSuccess && std::chrono::steady_clock::now() < end) {
    must(ncclCommGetAsyncError(comm, &state), "async error");
    std::this_thread::yield();
  }
  std::printf("%s, %s\n", ncclGetErrorString(state), cudaGetErrorName(cudaStreamQuery(nullptr)));
}

}  // namespace

int main(int, char** argv) {
  std::string mode = argv[1];
  if (mode == "count" || mode == "version") return ask(mode);
  int rank = std::atoi(argv[3]);
  cudaSetDevice(rank);
  ncclComm_t comm = nullptr;
  must(ncclCommInitRank(&comm, std::atoi(argv[4]), read_id(argv[2]), rank), "init");
  float* memory = nullptr;
  float value = static_cast<float>(rank) + 1;
  cudaMalloc(reinterpret_cast<void**>(&memory), sizeof value);
  cudaMemcpy(memory, &value, sizeof value, cudaMemcpyHostToDevice);
  must(ncclAllReduce(memory, memory, 1, ncclFloat, ncclSum, comm, nullptr), "all_reduce");
  cudaError_t error = cudaStreamSynchronize(nullptr);
  if (error != cudaSuccess) return std::printf("%s\n", cudaGetErrorName(error)), 1;
  if (mode == "sum") {
    std::printf("%g\n", static_cast<double>(*memory));
    must(ncclCommDestroy(comm), "destroy");
    return 0;
  }
  if (rank == 1) raise(mode == "die" ? SIGKILL : SIGSTOP);
  must(ncclAllReduce(memory, memory, 1, ncclFloat, ncclSum, comm, nullptr), "all_reduce");
  wait_alone(comm, mode == "die" || mode == "async");
  must(ncclCommAbort(comm), "abort");
  std::printf("aborted, %s\n", cudaGetErrorName(cudaStreamSynchronize(nullptr)));
  return 0;
}
