// SPDX-License-Identifier: Apache-2.0
// A block is copied three times: what stands in the second copy is whole if the version beside it
// is even and the same in the first and in the third. (One copy would not do: within it nothing
// says in which order bytes were taken.)
#include "nccl/report/worker_page_reader.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <memory>

namespace muster::worker_page {

namespace {

using comm::DataType;
using comm::ReduceOp;
using comm::detail::OpKind;

constexpr int kTries = 3;
constexpr size_t kHeadBytes = offsetof(Page, communicators);
// The page without its communicators.
struct Head {
  Shared<uint64_t> magic;
  Shared<uint32_t> layout;
  Shared<int32_t> owner;
  Shared<int32_t> rank;
  Shared<int32_t> world_size;
  ProgressBlock progress;
};
static_assert(sizeof(Head) == kHeadBytes);
static_assert(offsetof(Head, layout) == offsetof(Page, layout));
static_assert(offsetof(Head, world_size) == offsetof(Page, world_size));
static_assert(offsetof(Head, progress) == offsetof(Page, progress));
// Of a block: says whether the rest is worth reading.
constexpr size_t kBlockHeadBytes = offsetof(CommunicatorBlock, id);
constexpr double kMaxReal = 1e300;

bool read_at(int fd, size_t offset, void* to, size_t size) {
  auto* at = static_cast<char*>(to);
  while (size > 0) {
    const ssize_t got = ::pread(fd, at, size, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    offset += static_cast<size_t>(got);
    size -= static_cast<size_t>(got);
  }
  return true;
}

template <typename T>
T get(const Shared<T>& field) {
  return field.load(std::memory_order_relaxed);
}

// The text before the first 0, with '?' for what would drive a terminal.
std::string text_in(const char* from, size_t size) {
  std::string text(from, std::find(from, from + size, '\0'));
  for (char& c : text) {
    if ((c >= 0 && c < ' ') || c == 0x7f) c = '?';
  }
  return text;
}

template <typename T>
T within(T value, T low, T high, T otherwise) {
  return value >= low && value <= high ? value : otherwise;
}

// False for what is not a number, too.
bool is_real(double value) {
  return value >= -kMaxReal && value <= kMaxReal;
}

// Three copies of one block of the page.
template <typename T>
class Copies {
 public:
  bool take(int fd, size_t offset) {
    for (T& copy : *copies_) {
      if (!read_at(fd, offset, &copy, sizeof(T))) return false;
    }
    return true;
  }
  const T& middle() const { return (*copies_)[1]; }

  // `version_in(copy)` gives the version beside what is asked about.
  template <typename VersionIn>
  bool whole(VersionIn version_in) const {
    const uint64_t before = get(version_in((*copies_)[0]));
    return before % 2 == 0 && before == get(version_in((*copies_)[2]));
  }

 private:
  std::unique_ptr<std::array<T, 3>> copies_ = std::make_unique<std::array<T, 3>>();
};

using BlockCopies = Copies<CommunicatorBlock>;

PageProgress progress_of(const ProgressBlock& block) {
  constexpr auto kMost = static_cast<int64_t>(kMaxNumber);
  PageProgress progress;
  progress.step = within<int64_t>(get(block.step), 0, kMost, -1);
  progress.total = within<int64_t>(get(block.total), 0, kMost, -1);
  progress.reported_ns = std::max<int64_t>(0, get(block.reported_ns));
  progress.heartbeat_ns = std::max<int64_t>(0, get(block.heartbeat_ns));
  if (const double loss = get(block.loss); is_real(loss)) progress.loss = loss;
  const auto count = std::min<uint32_t>(get(block.values), kMaxValues);
  for (uint32_t i = 0; i < count; ++i) {
    const double value = get(block.named[i].value);
    std::string name = text_in(block.named[i].name, kValueName - 1);
    if (!name.empty() && is_real(value)) progress.values.emplace_back(std::move(name), value);
  }
  return progress;
}

std::optional<PageOperation> operation_of(const RingEntry& entry, int32_t size) {
  PageOperation operation;
  const uint8_t kind = get(entry.kind), type = get(entry.type), reduce = get(entry.reduce);
  const uint8_t state = get(entry.state);
  operation.sequence = get(entry.sequence);
  operation.count = get(entry.count);
  operation.start_ns = get(entry.start_ns);
  operation.end_ns = std::max<int64_t>(0, get(entry.end_ns));
  const bool sane = kind < comm::detail::kOpKinds && type < comm::kDataTypes &&
                    reduce <= static_cast<uint8_t>(ReduceOp::kAverage) &&
                    state >= static_cast<uint8_t>(OpState::kRunning) &&
                    state <= static_cast<uint8_t>(OpState::kFailed) && operation.sequence > 0 &&
                    operation.sequence <= kMaxNumber && operation.count <= kMaxNumber &&
                    operation.start_ns > 0;
  if (!sane) return std::nullopt;
  operation.kind = static_cast<OpKind>(kind);
  operation.type = static_cast<DataType>(type);
  operation.reduce = static_cast<ReduceOp>(reduce);
  operation.state = static_cast<OpState>(state);
  operation.root_or_peer = within(get(entry.root_or_peer), 0, size - 1, 0);
  operation.tag = std::max(0, get(entry.tag));
  return operation;
}

void add_operations(const BlockCopies& copies, PageCommunicator& communicator, int& torn) {
  const CommunicatorBlock& block = copies.middle();
  const uint64_t written = std::min(get(block.entries), kMaxNumber);
  const uint64_t first = written > kRingSize ? written - kRingSize : 0;
  for (uint64_t i = first; i < written; ++i) {
    const size_t at = i % kRingSize;
    const bool whole = copies.whole(
        [at](const CommunicatorBlock& b) -> const Shared<uint64_t>& { return b.ring[at].version; });
    const auto operation = whole ? operation_of(block.ring[at], communicator.size) : std::nullopt;
    operation ? communicator.operations.push_back(*operation) : static_cast<void>(++torn);
  }
}

std::vector<int32_t> members_of(const CommunicatorBlock& block, int32_t size) {
  const uint32_t count = get(block.members);
  if (count > kMaxMembers || static_cast<int64_t>(count) != size) return {};
  std::vector<int32_t> members;
  for (uint32_t i = 0; i < count; ++i) {
    const int32_t rank = get(block.member[i]);
    if (rank < 0 || rank >= kMaxWorld) return {};
    members.push_back(rank);
  }
  return members;
}

std::optional<PageCommunicator> communicator_of(const BlockCopies& copies, int& torn) {
  const CommunicatorBlock& block = copies.middle();
  PageCommunicator communicator;
  communicator.id = get(block.id);
  communicator.size = get(block.size);
  communicator.rank = get(block.rank);
  if (communicator.size < 1 || communicator.size > kMaxWorld || communicator.rank < 0 ||
      communicator.rank >= communicator.size) {
    return std::nullopt;
  }
  communicator.closed = get(block.closed) != 0;
  communicator.name = text_in(block.name, kMaxName - 1);
  communicator.members = members_of(block, communicator.size);
  communicator.collectives = std::min(get(block.collectives), kMaxNumber);
  communicator.messages = std::min(get(block.messages), kMaxNumber);
  add_operations(copies, communicator, torn);
  return communicator;
}

void add_communicator(int fd, int index, BlockCopies& copies, PageContent& page) {
  const size_t offset = kHeadBytes + static_cast<size_t>(index) * sizeof(CommunicatorBlock);
  CommunicatorBlock head{};
  if (!read_at(fd, offset, &head, kBlockHeadBytes) || get(head.used) != 1) return;
  for (int i = 0; i < kTries; ++i) {
    if (!copies.take(fd, offset)) return;
    const bool whole = copies.whole(
        [](const CommunicatorBlock& b) -> const Shared<uint64_t>& { return b.version; });
    if (!whole) continue;
    auto communicator = communicator_of(copies, page.torn);
    if (!communicator) break;
    page.communicators.push_back(std::move(*communicator));
    return;
  }
  ++page.torn;
}

}  // namespace

std::optional<PageContent> read_page(int fd) {
  Copies<Head> heads;
  PageContent page;
  for (int i = 0; i < kTries; ++i) {
    if (!heads.take(fd, 0)) return std::nullopt;
    const Head& head = heads.middle();
    if (get(head.magic) != kMagic || get(head.layout) != kVersion) return std::nullopt;
    page.owner = get(head.owner);
    page.rank = within(get(head.rank), 0, kMaxWorld, -1);
    page.world_size = within(get(head.world_size), 1, kMaxWorld, 0);
    const bool whole =
        heads.whole([](const Head& h) -> const Shared<uint64_t>& { return h.progress.version; });
    if (whole) {
      page.progress = progress_of(head.progress);
      break;
    }
    if (i + 1 == kTries) ++page.torn;
  }
  BlockCopies copies;
  for (int i = 0; i < kMaxCommunicators; ++i)
    add_communicator(fd, i, copies, page);
  return page;
}

const char* name_of(OpKind kind) {
  return comm::detail::to_string(kind);
}
const char* name_of(DataType type) {
  return comm::to_string(type);
}
const char* name_of(ReduceOp reduce) {
  return comm::to_string(reduce);
}

}  // namespace muster::worker_page
