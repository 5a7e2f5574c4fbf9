// SPDX-License-Identifier: Apache-2.0
#include "nccl/report/worker_page_reader.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <limits>
#include <numeric>
#include <random>
#include <thread>

#include "nccl/page/written_page.h"

namespace muster::worker_page {
namespace {

using comm::DataType;
using comm::detail::OpKind;
using testing::WrittenPage;

// The page is still there; what it says must be within what the reader promises.
void check_sane(const PageContent& page) {
  CHECK(page.rank >= -1);
  CHECK(page.communicators.size() <= static_cast<size_t>(kMaxCommunicators));
  CHECK(page.progress.values.size() <= static_cast<size_t>(kMaxValues));
  for (const PageCommunicator& communicator : page.communicators) {
    CHECK(communicator.rank < communicator.size);
    CHECK(communicator.operations.size() <= static_cast<size_t>(kRingSize));
    CHECK(communicator.members.size() <= static_cast<size_t>(kMaxMembers));
    for (const PageOperation& operation : communicator.operations) {
      CHECK(std::string(name_of(operation.kind)) != "unknown");
      CHECK(std::string(name_of(operation.type)) != "unknown");
      CHECK(operation.root_or_peer < communicator.size);
    }
  }
}

TEST_CASE("a page that nobody has written says nothing") {
  WrittenPage page;
  CHECK_FALSE(read_page(page.fd()));
  CHECK_FALSE(read_page(-1));
}

TEST_CASE("reading leaves the holes of a page") {
  WrittenPage page;
  page.own(0, 1);
  REQUIRE(read_page(page.fd()));
  struct stat info {};
  REQUIRE(::fstat(page.fd(), &info) == 0);
  CHECK(info.st_blocks * 512 <= 4096);  // the head's alone
}

TEST_CASE("another magic or layout is no page") {
  WrittenPage page;
  page.own(0, 1);
  page->layout = kVersion + 1;
  CHECK_FALSE(read_page(page.fd()));
  page->layout = kVersion;
  page->magic = kMagic + 1;
  CHECK_FALSE(read_page(page.fd()));
}

TEST_CASE("a file that is too short is no page") {
  const int fd = ::memfd_create("short", MFD_CLOEXEC);
  REQUIRE(::ftruncate(fd, 64) == 0);
  CHECK_FALSE(read_page(fd));
  ::close(fd);
}

TEST_CASE("progress is read with its named values") {
  WrittenPage page;
  page.own(3, 8);
  ProgressBlock& block = page->progress;
  block.step = 41;
  block.total = 100;
  block.loss = 0.5;
  block.heartbeat_ns = 77;
  block.reported_ns = 70;
  std::strcpy(block.named[0].name, "accuracy");
  block.named[0].value = 0.93;
  std::strcpy(block.named[1].name, "bad\x1bname");
  block.named[1].value = 1;
  std::strcpy(block.named[2].name, "nan");
  block.named[2].value = std::numeric_limits<double>::quiet_NaN();
  block.values = 3;
  const auto content = read_page(page.fd());
  REQUIRE(content);
  CHECK(content->rank == 3);
  CHECK(content->world_size == 8);
  CHECK(content->owner == ::getpid());
  CHECK(content->progress.step == 41);
  CHECK(content->progress.total == 100);
  CHECK(content->progress.loss == 0.5);
  CHECK(content->progress.heartbeat_ns == 77);
  REQUIRE(content->progress.values.size() == 2);
  CHECK(content->progress.values[0] == std::pair<std::string, double>("accuracy", 0.93));
  CHECK(content->progress.values[1].first == "bad?name");
}

TEST_CASE("what was never reported is not known") {
  WrittenPage page;
  page.own(0, 1);
  const auto content = read_page(page.fd());
  REQUIRE(content);
  CHECK(content->progress.step == -1);
  CHECK_FALSE(content->progress.loss);
  CHECK(content->progress.values.empty());
  CHECK(content->communicators.empty());
}

TEST_CASE("operations are read in order, with what they are") {
  WrittenPage page;
  page.own(1, 2);
  CommunicatorBlock& block = page.communicator(0, 99, 1, {0, 1}, "tp");
  WrittenPage::leave(WrittenPage::enter(block, {OpKind::kBroadcast, 10, DataType::kUint8, 1}));
  WrittenPage::enter(block, {OpKind::kRecv, 4, DataType::kInt32, 0, 7});
  const auto content = read_page(page.fd());
  REQUIRE(content);
  REQUIRE(content->communicators.size() == 1);
  const PageCommunicator& communicator = content->communicators[0];
  CHECK(communicator.id == 99);
  CHECK(communicator.rank == 1);
  CHECK(communicator.name == "tp");
  CHECK(communicator.members == std::vector<int32_t>{0, 1});
  CHECK(communicator.collectives == 1);
  CHECK(communicator.messages == 1);
  REQUIRE(communicator.operations.size() == 2);
  const PageOperation& first = communicator.operations[0];
  CHECK(first.kind == OpKind::kBroadcast);
  CHECK(first.state == OpState::kDone);
  CHECK(first.root_or_peer == 1);
  CHECK(first.end_ns >= first.start_ns);
  const PageOperation& second = communicator.operations[1];
  CHECK(second.kind == OpKind::kRecv);
  CHECK(second.tag == 7);
  CHECK(second.type == DataType::kInt32);
  CHECK(second.state == OpState::kRunning);
}

TEST_CASE("of many operations the ring keeps the last ones") {
  WrittenPage page;
  page.own(0, 1);
  CommunicatorBlock& block = page.communicator(0, 1, 0, {0});
  for (int i = 0; i < 3 * kRingSize + 5; ++i)
    WrittenPage::leave(WrittenPage::enter(block, {}));
  const auto content = read_page(page.fd());
  REQUIRE(content);
  const auto& operations = content->communicators.at(0).operations;
  REQUIRE(operations.size() == static_cast<size_t>(kRingSize));
  CHECK(operations.front().sequence == 2 * kRingSize + 6);
  CHECK(operations.back().sequence == 3 * kRingSize + 5);
}

TEST_CASE("every communicator that there is room for is read") {
  WrittenPage page;
  page.own(0, 1);
  for (int i = 0; i < kMaxCommunicators; ++i)
    page.communicator(i, static_cast<uint64_t>(i) + 1, 0, {0});
  const auto content = read_page(page.fd());
  REQUIRE(content);
  CHECK(content->communicators.size() == static_cast<size_t>(kMaxCommunicators));
}

TEST_CASE("a group that is too large to list has its size alone") {
  WrittenPage page;
  page.own(0, 2000);
  std::vector<int> members(kMaxMembers + 1);
  std::iota(members.begin(), members.end(), 0);
  page.communicator(0, 1, 0, members);
  members.pop_back();
  page.communicator(1, 2, 0, members);
  const auto content = read_page(page.fd());
  REQUIRE(content);
  REQUIRE(content->communicators.size() == 2);
  CHECK(content->communicators[0].size == kMaxMembers + 1);
  CHECK(content->communicators[0].members.empty());
  CHECK(content->communicators[1].members.size() == static_cast<size_t>(kMaxMembers));
}

TEST_CASE("what was half written by a death is left out and counted") {
  WrittenPage page;
  page.own(0, 1);
  CommunicatorBlock& block = page.communicator(0, 1, 0, {0});
  WrittenPage::enter(block, {});
  ++WrittenPage::enter(block, {}).version;
  page.communicator(1, 2, 0, {0}).version = 1;
  page->progress.step = 5;
  page->progress.version = 3;
  const auto content = read_page(page.fd());
  REQUIRE(content);
  CHECK(content->torn == 3);
  CHECK(content->progress.step == -1);
  REQUIRE(content->communicators.size() == 1);
  CHECK(content->communicators[0].operations.size() == 1);
}

TEST_CASE("impossible numbers are left out") {
  WrittenPage page;
  page.own(0, 1);
  CommunicatorBlock& block = page.communicator(0, 1, 0, {0});
  WrittenPage::enter(block, {}).kind = comm::detail::kOpKinds;
  WrittenPage::enter(block, {}).type = comm::kDataTypes;
  WrittenPage::enter(block, {}).reduce = 5;
  WrittenPage::enter(block, {}).state = 4;
  WrittenPage::enter(block, {}).sequence = 0;
  WrittenPage::enter(block, {}).count = kMaxNumber + 1;
  WrittenPage::enter(block, {}).start_ns = -1;
  RingEntry& other = WrittenPage::enter(block, {});
  other.root_or_peer = 12;
  other.tag = INT32_MIN;
  page.communicator(1, 2, 4, {0, 1});         // a rank that is not in it
  page.communicator(2, 3, 0, {0}).size = -1;  // less than nobody
  page.communicator(3, 4, 0, {0, -3});        // members that cannot be
  page->rank = kMaxWorld + 1;
  const auto content = read_page(page.fd());
  REQUIRE(content);
  CHECK(content->rank == -1);
  REQUIRE(content->communicators.size() == 2);
  CHECK(content->communicators[0].operations.size() == 1);
  CHECK(content->communicators[0].operations[0].root_or_peer == 0);
  CHECK(content->communicators[0].operations[0].tag == 0);
  CHECK(content->communicators[1].members.empty());
  CHECK(content->torn == 9);
}

TEST_CASE("no bytes of a page are believed") {
  WrittenPage page;
  std::mt19937_64 random(7);
  auto* bytes = reinterpret_cast<unsigned char*>(&*page);
  for (int round = 0; round < 200; ++round) {
    for (size_t i = 0; i < sizeof(Page); i += 1 + random() % 64)
      bytes[i] = static_cast<unsigned char>(random() % (round % 2 == 0 ? 256 : 3));
    page->magic = kMagic;
    page->layout = kVersion;
    page->progress.version = 0;
    for (auto& block : page->communicators) {
      block.used = 1;
      block.version = 0;
    }
    const auto content = read_page(page.fd());
    REQUIRE(content);
    check_sane(*content);
  }
}

TEST_CASE("what is read while it is written is whole") {
  WrittenPage page;
  page.own(0, 1);
  CommunicatorBlock& block = page.communicator(0, 1, 0, {0});
  std::atomic<bool> over{false};
  std::thread writer([&] {
    // The count of an operation is its number times three.
    for (uint64_t i = 1; !over; ++i)
      WrittenPage::leave(WrittenPage::enter(block, {OpKind::kAllReduce, 3 * i}));
  });
  size_t seen = 0;
  for (int i = 0; i < 300; ++i) {
    const auto content = read_page(page.fd());
    REQUIRE(content);
    for (const PageOperation& operation : content->communicators.at(0).operations) {
      CHECK(operation.count == 3 * operation.sequence);
      ++seen;
    }
  }
  over = true;
  writer.join();
  CHECK(seen > 0);
}

}  // namespace
}  // namespace muster::worker_page
