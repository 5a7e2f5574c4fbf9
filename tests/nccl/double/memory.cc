// SPDX-License-Identifier: Apache-2.0
#include "memory.h"

#include <cstdlib>
#include <cstring>
#include <map>

#include "device.h"

namespace doubles {
namespace {

constexpr size_t kAlignment = 512;

// By their beginnings; guarded by Runtime::mutex. Never freed, as the Runtime.
std::map<const std::byte*, Block>& blocks() {
  static auto* all = new std::map<const std::byte*, Block>;
  return *all;
}

bool counts(const Block& block) {
  return block.type == cudaMemoryTypeDevice;
}

void add(const Block& block) {
  blocks()[block.begin] = block;
  if (counts(block)) Runtime::get().devices[static_cast<size_t>(block.device)].used += block.size;
}

}  // namespace

void* allocate(size_t bytes, cudaMemoryType type) {
  Runtime& runtime = Runtime::get();
  std::lock_guard lock(runtime.mutex);
  const Device& device = runtime.devices[static_cast<size_t>(current_device())];
  if (type == cudaMemoryTypeDevice && bytes > runtime.memory - device.used) return nullptr;
  size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void* memory = std::aligned_alloc(kAlignment, rounded);
  if (!memory) return nullptr;
  std::memset(memory, 0xff, rounded);
  add({static_cast<std::byte*>(memory), bytes, type, current_device(), true});
  return memory;
}

bool release(void* begin, cudaMemoryType type) {
  Runtime& runtime = Runtime::get();
  std::lock_guard lock(runtime.mutex);
  auto found = blocks().find(static_cast<std::byte*>(begin));
  if (found == blocks().end() || !found->second.owned) return false;
  bool host = found->second.type == cudaMemoryTypeHost;
  if (host != (type == cudaMemoryTypeHost)) return false;
  const Block& block = found->second;
  if (counts(block)) runtime.devices[static_cast<size_t>(block.device)].used -= block.size;
  blocks().erase(found);
  std::free(begin);
  return true;
}

bool add_registered(void* begin, size_t bytes) {
  if (find_block(begin)) return false;
  std::lock_guard lock(Runtime::get().mutex);
  add({static_cast<std::byte*>(begin), bytes, cudaMemoryTypeHost, current_device(), false});
  return true;
}

bool remove_registered(void* begin) {
  std::lock_guard lock(Runtime::get().mutex);
  auto found = blocks().find(static_cast<std::byte*>(begin));
  if (found == blocks().end() || found->second.owned) return false;
  blocks().erase(found);
  return true;
}

std::optional<Block> find_block(const void* pointer) {
  std::lock_guard lock(Runtime::get().mutex);
  const auto* byte = static_cast<const std::byte*>(pointer);
  auto next = blocks().upper_bound(byte);
  if (next == blocks().begin()) return std::nullopt;
  const Block& block = std::prev(next)->second;
  if (byte >= block.begin + block.size) return std::nullopt;
  return block;
}

bool device_can_reach(const void* pointer, size_t bytes) {
  if (bytes == 0) return true;
  std::optional<Block> block = find_block(pointer);
  if (!block) return false;
  return bytes <=
         block->size - static_cast<size_t>(static_cast<const std::byte*>(pointer) - block->begin);
}

}  // namespace doubles
