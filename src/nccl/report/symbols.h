// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace muster::comm::detail {

struct Symbol {
  std::string_view name{};    // as the compiler made it, with a 0 behind it; "": not known
  std::string_view module{};  // the file's name without its folder
  uint64_t address = 0;       // in the file, as addr2line takes it
};

// An address that the processor or the kernel gave.
inline void* pointer_to(uintptr_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
}

// Finds the function that an address belongs to, from the symbol tables of the files that are
// mapped: also of those that are not exported, which dladdr() does not know. Nothing is allocated,
// so a signal handler may use it; only dladdr() takes a lock (the loader's). A Symbol is good until
// the next find().
class SymbolFinder {
 public:
  SymbolFinder() = default;
  ~SymbolFinder();
  SymbolFinder(const SymbolFinder&) = delete;
  SymbolFinder& operator=(const SymbolFinder&) = delete;

  // `exact`: the instruction itself; otherwise one after a call, which may be the next function's.
  Symbol find(uintptr_t pc, bool exact);

 private:
  void map(const char* path, const void* base);
  void unmap();

  const void* base_ = nullptr;  // of the module whose file is mapped
  std::span<const std::byte> file_{};
  std::array<char, 4096> module_{};
  std::array<char, 1024> name_{};
};

// The function in an ELF file of this machine's kind whose code has `address`; "" if there is none,
// also where the file is broken. The name is in the file, with a 0 behind it.
std::string_view function_at(std::span<const std::byte> file, uint64_t address);

// The address for which the file was linked of what lies `offset` bytes into the module in memory.
uint64_t linked_address(std::span<const std::byte> file, uint64_t base, uint64_t offset);

}  // namespace muster::comm::detail
