// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime's functions about memory. All signatures are cuda_runtime_api.h's.
#include <cuda_runtime_api.h>

#include <cstring>
#include <vector>

#include "device.h"
#include "memory.h"
#include "stream.h"

using namespace doubles;

namespace {

cudaError_t allocate_into(void** pointer, size_t bytes, cudaMemoryType type) {
  if (!pointer) return answer(cudaErrorInvalidValue);
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  *pointer = allocate(bytes, type);
  return *pointer ? cudaSuccess : answer(cudaErrorMemoryAllocation);
}

bool pageable(const void* pointer) {
  return !find_block(pointer);
}

bool on_device(const void* pointer, size_t bytes) {
  std::optional<Block> block = find_block(pointer);
  return block && block->type != cudaMemoryTypeHost && device_can_reach(pointer, bytes);
}

// Whether both ends are where the direction says; a device's end within its block.
bool direction_fits(const void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  if (bytes == 0) return true;
  auto whole_or_pageable = [&](const void* end) {
    return pageable(end) || device_can_reach(end, bytes);
  };
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return on_device(to, bytes) && whole_or_pageable(from);
    case cudaMemcpyDeviceToHost:
      return on_device(from, bytes) && whole_or_pageable(to);
    case cudaMemcpyDeviceToDevice:
      return on_device(to, bytes) && on_device(from, bytes);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
      return whole_or_pageable(to) && whole_or_pageable(from);
  }
  return false;
}

// As CUDA: what comes from pageable memory is read before this returns; what goes there has arrived
// when this returns.
cudaError_t copy_async(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                       cudaStream_t stream) {
  if (!direction_fits(to, from, bytes, kind)) return answer(cudaErrorInvalidValue);
  std::shared_ptr<Stream> target = find_stream(stream);
  if (!target) return answer(cudaErrorInvalidResourceHandle);
  Stream::Task task = [to, from, bytes] {
    std::memmove(to, from, bytes);
    return cudaSuccess;
  };
  if (pageable(from) && bytes > 0) {
    const auto* begin = static_cast<const std::byte*>(from);
    task = [to, staged = std::vector<std::byte>(begin, begin + bytes)] {
      std::memcpy(to, staged.data(), staged.size());
      return cudaSuccess;
    };
  }
  std::shared_ptr<const Moment> done = enqueue(stream, std::move(task));
  if (!done) return answer(cudaErrorInvalidResourceHandle);
  return pageable(to) ? answer(wait_for(target->device(), {done})) : cudaSuccess;
}

cudaError_t set_async(void* memory, int value, size_t bytes, cudaStream_t stream) {
  if (!device_can_reach(memory, bytes)) return answer(cudaErrorInvalidValue);
  bool put = enqueue(stream, [=] {
               if (bytes > 0) std::memset(memory, value, bytes);
               return cudaSuccess;
             }) != nullptr;
  return put ? cudaSuccess : answer(cudaErrorInvalidResourceHandle);
}

// Freeing waits for whatever runs on the device, so that nothing still uses the memory.
cudaError_t free_after_all(void* pointer, cudaMemoryType type) {
  if (!pointer) return cudaSuccess;
  std::optional<Block> block = find_block(pointer);
  if (!block) return answer(cudaErrorInvalidValue);
  if (cudaError_t error = wait_for(block->device, all_work(block->device))) return answer(error);
  return release(pointer, type) ? cudaSuccess : answer(cudaErrorInvalidValue);
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  if (cudaError_t error = enter("cudaMalloc")) return error;
  return allocate_into(pointer, bytes, cudaMemoryTypeDevice);
}

cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned) {
  if (cudaError_t error = enter("cudaMallocManaged")) return error;
  return allocate_into(pointer, bytes, cudaMemoryTypeManaged);
}

cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  if (cudaError_t error = enter("cudaMallocHost")) return error;
  return allocate_into(pointer, bytes, cudaMemoryTypeHost);
}

cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned) {
  if (cudaError_t error = enter("cudaHostAlloc")) return error;
  return allocate_into(pointer, bytes, cudaMemoryTypeHost);
}

cudaError_t cudaFree(void* pointer) {
  if (cudaError_t error = enter("cudaFree")) return error;
  return free_after_all(pointer, cudaMemoryTypeDevice);
}

cudaError_t cudaFreeHost(void* pointer) {
  if (cudaError_t error = enter("cudaFreeHost")) return error;
  return free_after_all(pointer, cudaMemoryTypeHost);
}

cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
  if (cudaError_t error = enter("cudaMallocAsync")) return error;
  if (!find_stream(stream)) return answer(cudaErrorInvalidResourceHandle);
  return allocate_into(pointer, bytes, cudaMemoryTypeDevice);
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  if (cudaError_t error = enter("cudaFreeAsync")) return error;
  bool put =
      enqueue(stream, [pointer] {
        return release(pointer, cudaMemoryTypeDevice) ? cudaSuccess : cudaErrorIllegalAddress;
      }) != nullptr;
  return put ? cudaSuccess : answer(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned) {
  if (cudaError_t error = enter("cudaHostRegister")) return error;
  bool added = add_registered(pointer, bytes);
  return added ? cudaSuccess : answer(cudaErrorHostMemoryAlreadyRegistered);
}

cudaError_t cudaHostUnregister(void* pointer) {
  if (cudaError_t error = enter("cudaHostUnregister")) return error;
  return remove_registered(pointer) ? cudaSuccess : answer(cudaErrorHostMemoryNotRegistered);
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  if (cudaError_t error = enter("cudaPointerGetAttributes")) return error;
  if (!attributes) return answer(cudaErrorInvalidValue);
  *attributes = cudaPointerAttributes{};
  attributes->type = cudaMemoryTypeUnregistered;
  attributes->device = cudaInvalidDeviceId;
  attributes->hostPointer = const_cast<void*>(pointer);
  std::optional<Block> block = find_block(pointer);
  if (!block) return cudaSuccess;
  attributes->type = block->type;
  attributes->device = block->device;
  attributes->devicePointer = const_cast<void*>(pointer);
  if (block->type == cudaMemoryTypeDevice) attributes->hostPointer = nullptr;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  if (cudaError_t error = enter("cudaMemGetInfo")) return error;
  Runtime& runtime = Runtime::get();
  std::lock_guard lock(runtime.mutex);
  *total = runtime.memory;
  *free = runtime.memory - runtime.devices[static_cast<size_t>(current_device())].used;
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (cudaError_t error = enter("cudaMemcpyAsync")) return error;
  return copy_async(to, from, bytes, kind, stream);
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  if (cudaError_t error = enter("cudaMemcpy")) return error;
  if (cudaError_t error = copy_async(to, from, bytes, kind, nullptr)) return error;
  std::shared_ptr<const Moment> last = find_stream(nullptr)->last();
  return answer(wait_for(current_device(), {last}));
}

cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  if (cudaError_t error = enter("cudaMemsetAsync")) return error;
  return set_async(memory, value, bytes, stream);
}

cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  if (cudaError_t error = enter("cudaMemset")) return error;
  return set_async(memory, value, bytes, nullptr);
}

}  // extern "C"
