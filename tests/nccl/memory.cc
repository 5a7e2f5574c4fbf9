// SPDX-License-Identifier: Apache-2.0
#include "nccl/memory.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace muster::comm::test {
namespace {

constexpr int kMemcpyDefault = 4;  // cudaMemcpyDefault

[[noreturn]] void give_up(const char* what, const char* why) {
  std::fprintf(stderr, "test memory: %s: %s\n", what, why);
  std::exit(3);
}

// The few functions that a test needs; their C signatures, with cudaError_t and cudaStream_t as
// what they are in every version.
struct Cudart {
  void* library;
  int (*malloc)(void**, size_t);
  int (*free)(void*);
  int (*memcpy)(void*, const void*, size_t, int);
  int (*set_device)(int);
  int (*synchronize)();
  int (*stream_create)(void**);
  int (*stream_destroy)(void*);
  const char* (*text)(int);

  template <typename Function>
  void load(Function& function, const char* name) const {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (function == nullptr) give_up(name, dlerror());
  }
  void must(int error, const char* what) const {
    if (error != 0) give_up(what, text(error));
  }
};

void* open_library() {
  if (const char* path = std::getenv("MUSTER_CUDART_LIBRARY")) return dlopen(path, RTLD_NOW);
  for (const char* name : {"libcudart.so.13", "libcudart.so.12", "libcudart.so"}) {
    if (void* library = dlopen(name, RTLD_NOW)) return library;
  }
  return nullptr;
}

const Cudart& cudart() {
  static const Cudart table = [] {
    Cudart t{};
    t.library = open_library();
    if (t.library == nullptr) give_up("libcudart", dlerror());
    t.load(t.malloc, "cudaMalloc");
    t.load(t.free, "cudaFree");
    t.load(t.memcpy, "cudaMemcpy");
    t.load(t.set_device, "cudaSetDevice");
    t.load(t.synchronize, "cudaDeviceSynchronize");
    t.load(t.stream_create, "cudaStreamCreate");
    t.load(t.stream_destroy, "cudaStreamDestroy");
    t.load(t.text, "cudaGetErrorString");
    return t;
  }();
  return table;
}

}  // namespace

TestBuffer::TestBuffer(Backend backend, size_t count, DataType type)
    : backend_(backend), count_(count), type_(type) {
  const size_t bytes = std::max<size_t>(1, count * size_of(type));
  if (backend_ == Backend::kNccl) {
    cudart().must(cudart().malloc(&data_, bytes), "cudaMalloc");
  } else {
    data_ = std::malloc(bytes);
  }
}

TestBuffer::TestBuffer(TestBuffer&& other) noexcept
    : backend_(other.backend_),
      count_(other.count_),
      type_(other.type_),
      data_(std::exchange(other.data_, nullptr)) {}

TestBuffer::~TestBuffer() {
  if (data_ == nullptr) return;
  if (backend_ == Backend::kNccl) {
    cudart().free(data_);
  } else {
    std::free(data_);
  }
}

Buffer TestBuffer::buffer(Stream stream) {
  return backend_ == Backend::kNccl ? Buffer::device(data_, count_, type_, stream)
                                    : Buffer(data_, count_, type_);
}

void TestBuffer::upload(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  if (backend_ == Backend::kNccl) {
    cudart().must(cudart().memcpy(data_, bytes.data(), bytes.size(), kMemcpyDefault), "upload");
  } else {
    std::memcpy(data_, bytes.data(), bytes.size());
  }
}

std::vector<std::byte> TestBuffer::download() const {
  std::vector<std::byte> bytes(count_ * size_of(type_));
  if (bytes.empty()) return bytes;
  if (backend_ == Backend::kNccl) {
    cudart().must(cudart().synchronize(), "synchronize");
    cudart().must(cudart().memcpy(bytes.data(), data_, bytes.size(), kMemcpyDefault), "download");
  } else {
    std::memcpy(bytes.data(), data_, bytes.size());
  }
  return bytes;
}

void use_device(Backend backend, int device) {
  if (backend == Backend::kNccl) cudart().must(cudart().set_device(device), "cudaSetDevice");
}

Stream make_stream(Backend backend) {
  Stream stream = nullptr;
  if (backend == Backend::kNccl) cudart().must(cudart().stream_create(&stream), "stream");
  return stream;
}

void free_stream(Backend backend, Stream stream) {
  if (backend == Backend::kNccl && stream != nullptr) cudart().stream_destroy(stream);
}

}  // namespace muster::comm::test
