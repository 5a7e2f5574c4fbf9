// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <thread>
#include <vector>

namespace {

// A kernel that runs until it is let go.
struct Gate {
  std::promise<void> open;
  std::shared_future<void> opened = open.get_future().share();
  static void wait(void* gate) { static_cast<Gate*>(gate)->opened.wait(); }
};

struct StreamPair {
  cudaStream_t first = nullptr;
  cudaStream_t second = nullptr;
  explicit StreamPair(unsigned flags = cudaStreamNonBlocking) {
    REQUIRE(cudaStreamCreateWithFlags(&first, flags) == cudaSuccess);
    REQUIRE(cudaStreamCreateWithFlags(&second, flags) == cudaSuccess);
  }
  ~StreamPair() {
    CHECK(cudaStreamDestroy(first) == cudaSuccess);
    CHECK(cudaStreamDestroy(second) == cudaSuccess);
  }
};

}  // namespace

TEST_CASE("what is put on a stream runs in its order and not before") {
  StreamPair streams;
  Gate gate;
  int* device = nullptr;
  REQUIRE(cudaMalloc(reinterpret_cast<void**>(&device), sizeof(int)) == cudaSuccess);
  cudaLaunchHostFunc(streams.first, Gate::wait, &gate);
  CHECK(cudaMemsetAsync(device, 0, sizeof(int), streams.first) == cudaSuccess);
  CHECK(cudaStreamQuery(streams.first) == cudaErrorNotReady);
  CHECK(*device == -1);  // what nobody has written yet
  gate.open.set_value();
  CHECK(cudaStreamSynchronize(streams.first) == cudaSuccess);
  CHECK(*device == 0);
  CHECK(cudaFree(device) == cudaSuccess);
}

TEST_CASE("a stream waits for another one's event, and only for what was before it") {
  StreamPair streams;
  Gate gate;
  Gate later;
  cudaEvent_t event = nullptr;
  REQUIRE(cudaEventCreate(&event) == cudaSuccess);
  cudaLaunchHostFunc(streams.first, Gate::wait, &gate);
  cudaEventRecord(event, streams.first);
  cudaLaunchHostFunc(streams.first, Gate::wait, &later);
  cudaStreamWaitEvent(streams.second, event, 0);
  CHECK(cudaStreamQuery(streams.second) == cudaErrorNotReady);
  CHECK(cudaEventQuery(event) == cudaErrorNotReady);
  gate.open.set_value();
  CHECK(cudaStreamSynchronize(streams.second) == cudaSuccess);
  CHECK(cudaEventSynchronize(event) == cudaSuccess);
  CHECK(cudaStreamQuery(streams.first) == cudaErrorNotReady);
  later.open.set_value();
  CHECK(cudaStreamSynchronize(streams.first) == cudaSuccess);
  CHECK(cudaEventDestroy(event) == cudaSuccess);
}

TEST_CASE("the null stream waits for blocking streams and not for the others") {
  StreamPair blocking(cudaStreamDefault);
  StreamPair free_ones;
  Gate gate;
  Gate other;
  cudaLaunchHostFunc(free_ones.first, Gate::wait, &other);
  CHECK(cudaStreamSynchronize(nullptr) == cudaSuccess);
  cudaLaunchHostFunc(blocking.first, Gate::wait, &gate);
  cudaLaunchHostFunc(
      nullptr, [](void*) {}, nullptr);
  CHECK(cudaStreamQuery(nullptr) == cudaErrorNotReady);
  // And what comes after it on another blocking stream waits for it.
  cudaLaunchHostFunc(
      blocking.second, [](void*) {}, nullptr);
  CHECK(cudaStreamQuery(blocking.second) == cudaErrorNotReady);
  gate.open.set_value();
  CHECK(cudaStreamSynchronize(blocking.second) == cudaSuccess);
  other.open.set_value();
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
}

TEST_CASE("device memory is recognised, and a copy past its end refused") {
  char* device = nullptr;
  char host[8] = "abcdefg";
  REQUIRE(cudaMalloc(reinterpret_cast<void**>(&device), sizeof host) == cudaSuccess);
  cudaPointerAttributes attributes;
  CHECK(cudaPointerGetAttributes(&attributes, device + 3) == cudaSuccess);
  CHECK(attributes.type == cudaMemoryTypeDevice);
  CHECK(attributes.device == 0);
  CHECK(cudaPointerGetAttributes(&attributes, host) == cudaSuccess);
  CHECK(attributes.type == cudaMemoryTypeUnregistered);
  CHECK(cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice) == cudaSuccess);
  CHECK(cudaMemcpy(device + 1, host, sizeof host, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(cudaMemcpy(device, host, sizeof host, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
  CHECK(cudaFree(device) == cudaSuccess);
  CHECK(cudaFree(device) == cudaErrorInvalidValue);
  cudaGetLastError();
}

TEST_CASE("a copy from pageable memory has read it when it returns") {
  StreamPair streams;
  Gate gate;
  char* device = nullptr;
  REQUIRE(cudaMalloc(reinterpret_cast<void**>(&device), 1) == cudaSuccess);
  cudaLaunchHostFunc(streams.first, Gate::wait, &gate);
  char host = 'a';
  CHECK(cudaMemcpyAsync(device, &host, 1, cudaMemcpyHostToDevice, streams.first) == cudaSuccess);
  host = 'b';
  gate.open.set_value();
  CHECK(cudaStreamSynchronize(streams.first) == cudaSuccess);
  CHECK(*device == 'a');
  CHECK(cudaFree(device) == cudaSuccess);
}

TEST_CASE("freeing waits for what runs on the device") {
  StreamPair streams;
  Gate gate;
  void* device = nullptr;
  REQUIRE(cudaMalloc(&device, 1) == cudaSuccess);
  cudaLaunchHostFunc(streams.first, Gate::wait, &gate);
  std::atomic<bool> freed{false};
  std::thread thread([&] {
    CHECK(cudaFree(device) == cudaSuccess);
    freed = true;
  });
  // Only that it comes after the gate can be seen for certain.
  CHECK_FALSE(freed);
  gate.open.set_value();
  thread.join();
}

TEST_CASE("a host function may not call CUDA") {
  cudaError_t answer = cudaSuccess;
  auto call = [](void* out) {
    int device = 0;
    *static_cast<cudaError_t*>(out) = cudaGetDevice(&device);
  };
  CHECK(cudaLaunchHostFunc(nullptr, call, &answer) == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(answer == cudaErrorNotPermitted);
}

TEST_CASE("the devices are the 8 of one machine, each with its own bus and uuid") {
  int count = 0;
  CHECK(cudaGetDeviceCount(&count) == cudaSuccess);
  CHECK(count == 8);
  cudaDeviceProp first{};
  cudaDeviceProp last{};
  CHECK(cudaGetDeviceProperties(&first, 0) == cudaSuccess);
  CHECK(cudaGetDeviceProperties(&last, 7) == cudaSuccess);
  CHECK(first.uuid.bytes[15] != last.uuid.bytes[15]);
  char bus[16];
  CHECK(cudaDeviceGetPCIBusId(bus, sizeof bus, 7) == cudaSuccess);
  CHECK(std::string(bus) == "0000:08:00.0");
  CHECK(cudaSetDevice(8) == cudaErrorInvalidDevice);
  CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
}
