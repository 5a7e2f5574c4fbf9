// SPDX-License-Identifier: Apache-2.0
#include "nccl/report/symbols.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace muster::comm::detail {
namespace {

using Header = ElfW(Ehdr);
using Section = ElfW(Shdr);
using Segment = ElfW(Phdr);
using Entry = ElfW(Sym);

constexpr unsigned kTypeMask = 0xf;  // of st_info, for 32 and 64 bits alike

// A copy, since nothing in a file need be aligned; none where the file ends before.
template <typename T>
std::optional<T> at(std::span<const std::byte> file, uint64_t offset) {
  if (offset > file.size() || file.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, file.data() + offset, sizeof(T));
  return value;
}

std::optional<Header> header_of(std::span<const std::byte> file) {
  auto header = at<Header>(file, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return std::nullopt;
  return header;
}

std::string_view string_at(std::span<const std::byte> file, const Section& strings,
                           uint64_t index) {
  const uint64_t offset = strings.sh_offset + index;
  if (index >= strings.sh_size || offset >= file.size()) return {};
  const auto* text = reinterpret_cast<const char*>(file.data() + offset);
  const size_t room = std::min<uint64_t>(file.size() - offset, strings.sh_size - index);
  const auto* end = static_cast<const char*>(std::memchr(text, 0, room));
  return end != nullptr ? std::string_view(text, static_cast<size_t>(end - text))
                        : std::string_view();
}

std::string_view search(std::span<const std::byte> file, const Section& table,
                        const Section& strings, uint64_t address) {
  for (uint64_t i = 0; i < table.sh_size / sizeof(Entry); i++) {
    const auto entry = at<Entry>(file, table.sh_offset + i * sizeof(Entry));
    if (!entry) return {};
    const unsigned type = entry->st_info & kTypeMask;
    if ((type != STT_FUNC && type != STT_GNU_IFUNC) || entry->st_shndx == SHN_UNDEF) continue;
    if (address < entry->st_value || address - entry->st_value >= entry->st_size) continue;
    return string_at(file, strings, entry->st_name);
  }
  return {};
}

const char* file_name(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash != nullptr ? slash + 1 : path;
}

// What the loader calls the program itself is argv[0], which need not be a path from here.
bool is_program(const void* base) {
  Dl_info info{};
  // The kernel's number, not a pointer that we made.
  const auto entry = static_cast<uintptr_t>(getauxval(AT_ENTRY));
  return dladdr(pointer_to(entry), &info) != 0 && info.dli_fbase == base;
}

}  // namespace

std::string_view function_at(std::span<const std::byte> file, uint64_t address) {
  const auto header = header_of(file);
  if (!header || header->e_shentsize != sizeof(Section)) return {};
  const auto section = [&](uint64_t i) {
    return i < header->e_shnum ? at<Section>(file, header->e_shoff + i * sizeof(Section))
                               : std::nullopt;
  };
  for (const unsigned wanted : {SHT_SYMTAB, SHT_DYNSYM}) {
    for (uint64_t i = 0; i < header->e_shnum; i++) {
      const auto table = section(i);
      if (!table || table->sh_type != wanted) continue;
      const auto strings = section(table->sh_link);
      if (!strings) continue;
      const std::string_view found = search(file, *table, *strings, address);
      if (!found.empty()) return found;
    }
  }
  return {};
}

uint64_t linked_address(std::span<const std::byte> file, uint64_t base, uint64_t offset) {
  const auto header = header_of(file);
  if (!header || header->e_phentsize != sizeof(Segment)) return offset;
  if (header->e_type == ET_EXEC) return base + offset;
  for (uint64_t i = 0; i < header->e_phnum; i++) {
    const auto segment = at<Segment>(file, header->e_phoff + i * sizeof(Segment));
    if (!segment) break;
    if (segment->p_type == PT_LOAD) {
      return offset + segment->p_vaddr - segment->p_vaddr % std::max<uint64_t>(1, segment->p_align);
    }
  }
  return offset;
}

SymbolFinder::~SymbolFinder() {
  unmap();
}

void SymbolFinder::unmap() {
  if (file_.empty()) return;
  // munmap() writes nothing: the memory is const for us only.
  munmap(const_cast<std::byte*>(file_.data()), file_.size());
  file_ = {};
}

void SymbolFinder::map(const char* path, const void* base) {
  unmap();
  base_ = base;
  std::strncpy(module_.data(), file_name(path), module_.size() - 1);
  const int fd = open(is_program(base) ? "/proc/self/exe" : path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  struct stat info {};
  if (fstat(fd, &info) == 0 && info.st_size > 0) {
    const auto size = static_cast<size_t>(info.st_size);
    void* memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (memory != MAP_FAILED) file_ = {static_cast<const std::byte*>(memory), size};
  }
  close(fd);
}

Symbol SymbolFinder::find(uintptr_t pc, bool exact) {
  // The instruction after a call that never returns may belong to the next function.
  const uintptr_t inside = exact || pc == 0 ? pc : pc - 1;
  Symbol symbol;
  symbol.address = inside;
  Dl_info info{};
  if (dladdr(pointer_to(inside), &info) == 0 || info.dli_fname == nullptr) {
    return symbol;
  }
  if (info.dli_fbase != base_) map(info.dli_fname, info.dli_fbase);
  const auto base = reinterpret_cast<uintptr_t>(info.dli_fbase);
  symbol.module = module_.data();
  symbol.address = linked_address(file_, base, inside - base);
  std::string_view name = function_at(file_, symbol.address);
  if (name.empty() && info.dli_sname != nullptr) name = info.dli_sname;
  const size_t length = std::min(name.size(), name_.size() - 1);
  std::copy_n(name.begin(), length, name_.begin());
  name_[length] = 0;
  symbol.name = {name_.data(), length};
  return symbol;
}

}  // namespace muster::comm::detail
