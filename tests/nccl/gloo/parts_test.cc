// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "nccl/gloo/addresses.h"
#include "nccl/gloo/alarm.h"
#include "nccl/gloo/exchange.h"
#include "nccl/gloo/tags.h"

namespace muster::comm::detail {
namespace {

ListenAddresses some_addresses(sa_family_t family) {
  ListenAddresses addresses{.ports = {htons(1000), 0, htons(2000)}};
  addresses.host.ss_family = family;
  if (family == AF_INET6) {
    reinterpret_cast<sockaddr_in6&>(addresses.host).sin6_addr = in6addr_loopback;
  } else {
    reinterpret_cast<sockaddr_in&>(addresses.host).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  }
  return addresses;
}

}  // namespace

TEST_CASE("addresses go through the store and come back") {
  for (const sa_family_t family : {AF_INET, AF_INET6}) {
    const ListenAddresses addresses = some_addresses(family);
    const std::string bytes = addresses.encode() + "rest";
    std::string_view left = bytes;
    const auto back = ListenAddresses::decode(left, 3);
    REQUIRE(back);
    CHECK(left == "rest");
    CHECK(back->ports == addresses.ports);
    sockaddr_storage third = back->for_rank(2);
    CHECK(third.ss_family == family);
    CHECK(port_of(third) == htons(2000));
  }
}

TEST_CASE("addresses that are cut off or of another kind are none") {
  const std::string bytes = some_addresses(AF_INET).encode();
  for (size_t size = 0; size < bytes.size(); ++size) {
    std::string_view cut = std::string_view(bytes).substr(0, size);
    CHECK_FALSE(ListenAddresses::decode(cut, 3));
  }
  std::string_view more_ranks = bytes;
  CHECK_FALSE(ListenAddresses::decode(more_ranks, 4));
  const std::string other(64, '\1');
  std::string_view unknown = other;
  CHECK_FALSE(ListenAddresses::decode(unknown, 3));
}

TEST_CASE("of two addresses exactly one connects") {
  const ListenAddresses addresses = some_addresses(AF_INET);
  const sockaddr_storage first = addresses.for_rank(0), third = addresses.for_rank(2);
  CHECK(connects(first, third) != connects(third, first));
  CHECK_FALSE(connects(first, first));
}

TEST_CASE("an alarm rings at its time, and not once it is gone") {
  std::atomic<int> rung = 0;
  {
    const Alarm never(Deadline::max(), [&] { ++rung; });
    const Alarm later(std::chrono::steady_clock::now() + std::chrono::hours(1), [&] { ++rung; });
  }
  CHECK(rung == 0);
  std::atomic<bool> rang = false;
  const Alarm now(std::chrono::steady_clock::now(), [&] {
    rang = true;
    rang.notify_one();
  });
  rang.wait(false);
}

TEST_CASE("calls that differ have different names") {
  std::vector<float> numbers(8);
  std::vector<int> others(8);
  Operation call{.kind = OpKind::kAllReduce, .out = numbers};
  const uint32_t tag = collective_tag(call);
  CHECK(collective_tag(call) == tag);
  Operation other = call;
  other.kind = OpKind::kBroadcast;
  CHECK(collective_tag(other) != tag);
  other = call;
  other.reduce = ReduceOp::kMax;
  CHECK(collective_tag(other) != tag);
  other = call;
  other.root_or_peer = 1;
  CHECK(collective_tag(other) != tag);
  other = call;
  other.out = others;
  CHECK(collective_tag(other) != tag);
  other = call;
  other.out.count = 7;
  CHECK(collective_tag(other) != tag);

  const auto slot = [](uint32_t message, size_t bytes) {
    return message_slot(SlotKind::kMessage, message, bytes);
  };
  CHECK(slot(1, 8) != slot(2, 8));
  CHECK(slot(1, 8) != slot(1, 9));
  CHECK(slot(1, 8) != message_slot(SlotKind::kAllToAll, 1, 8));
}

TEST_CASE("the parts of a sum are as equal as can be") {
  CHECK(even_parts(10, 4) == std::vector<size_t>{3, 3, 2, 2});
  CHECK(even_parts(2, 4) == std::vector<size_t>{1, 1, 0, 0});
  CHECK(even_parts(0, 2) == std::vector<size_t>{0, 0});
}

}  // namespace muster::comm::detail
