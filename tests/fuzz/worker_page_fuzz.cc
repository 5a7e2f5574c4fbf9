// SPDX-License-Identifier: Apache-2.0
// The input is what a worker left in its page: its head, and then parts of its communicators. What
// is read of it must travel to another node and be taken there.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>

#include "loop/check.h"
#include "nccl/report/worker_page_reader.h"
#include "supervisor/rendezvous/operation_codec.h"

using namespace muster::worker_page;

namespace {

constexpr size_t kHead = offsetof(Page, communicators);
// Of each communicator: what stands before its members, and behind them with a few entries.
constexpr size_t kFront = offsetof(CommunicatorBlock, member);
constexpr size_t kBack = offsetof(CommunicatorBlock, ring) - offsetof(CommunicatorBlock, entries) +
                         4 * sizeof(RingEntry);

void check_travel(const PageContent& content) {
  using namespace muster;
  const RankOperations operations = operations_of(content, 1'000'000'000'000);
  const std::string bytes = encode_operations(operations);
  packed::Reader reader(bytes);
  RankOperations back;
  decode_operations(reader, back);
  MUST(!reader.bad());
  MUST(back.communicators.size() <= operations.communicators.size());
  MUST(encode_operations(back) == bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int fd = ::memfd_create("page", MFD_CLOEXEC);
  static auto* page = static_cast<char*>([] {
    MUST(::ftruncate(fd, sizeof(Page)) == 0);
    return ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }());
  auto take = [&](size_t at, size_t most) {
    const size_t count = std::min(most, size);
    std::memset(page + at, 0, most);
    if (count > 0) std::memcpy(page + at, data, count);
    data += count;
    size -= count;
  };
  take(0, kHead);
  auto& head = *reinterpret_cast<Page*>(page);
  head.magic = kMagic;
  head.layout = kVersion;
  for (size_t i = 0; i < 2; ++i) {
    const size_t block = kHead + i * sizeof(CommunicatorBlock);
    take(block, kFront);
    take(block + offsetof(CommunicatorBlock, entries), kBack);
  }
  const auto content = read_page(fd);
  MUST(content.has_value());
  MUST(content->progress.values.size() <= static_cast<size_t>(kMaxValues));
  for (const PageCommunicator& communicator : content->communicators) {
    MUST(communicator.rank >= 0 && communicator.rank < communicator.size);
    MUST(std::all_of(communicator.name.begin(), communicator.name.end(),
                     [](char c) { return c < 0 || c >= ' '; }));
    for (const PageOperation& operation : communicator.operations)
      MUST(operation.root_or_peer < communicator.size && operation.sequence > 0);
  }
  check_travel(*content);
  return 0;
}
