// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>

#include "nccl/core/communicator_impl.h"
#include "nccl/core/ranks.h"
#include "nccl/join/world_impl.h"

// Communicators on Gloo, made through the store.
namespace muster::comm::detail {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const CommunicatorOptions kOptions{.timeout = seconds(40)};

CommunicatorOptions named(const std::string& name) {
  return {.timeout = seconds(40), .name = name};
}

// Whether its ranks reach each other.
bool works(Communicator& communicator) {
  std::vector<int> sum{1};
  communicator.all_reduce(sum).wait().value();
  return sum[0] == communicator.size();
}

bool came(muster::Store& store, const std::string& end) {
  const std::vector<std::string> keys = store.list_keys().value();
  return std::any_of(keys.begin(), keys.end(),
                     [&](const std::string& key) { return key.ends_with(end); });
}

}  // namespace

TEST_CASE("gloo: a world works together, at once and in the background") {
  ranks(4, [](World& world) {
    Communicator all = world.communicator(Backend::kGloo, kOptions).value();
    CHECK(all.name() == "world");
    CHECK(all.ranks() == std::vector<int>{0, 1, 2, 3});
    std::vector<float> numbers(1000, float(world.rank()));
    all.all_reduce(numbers).wait().value();
    CHECK(numbers[999] == 6);
    std::vector<Work> works;
    works.reserve(20);
    for (int i = 0; i < 20; ++i)
      works.push_back(all.all_reduce(numbers, ReduceOp::kMax, {.async = true}));
    all.barrier().wait().value();
    for (Work& work : works)
      work.wait().value();
    CHECK(numbers[0] == 6);
    all.close().value();
  });
}

TEST_CASE("gloo: messages find their receiver by tag, whatever the order of the calls") {
  ranks(2, [](World& world) {
    Communicator all = world.communicator(Backend::kGloo, kOptions).value();
    const int peer = 1 - world.rank();
    std::vector<int> first{world.rank()};
    std::vector<int> second{world.rank() + 10};
    std::vector<int> got_first{-1};
    std::vector<int> got_second{-1};
    std::vector<Work> works;
    works.push_back(all.irecv(got_second, peer, 2));
    works.push_back(all.irecv(got_first, peer, 1));
    Work collective = all.barrier({.async = true});
    works.push_back(all.isend(first, peer, 1));
    works.push_back(all.isend(second, peer, 2));
    for (Work& work : works)
      work.wait().value();
    collective.wait().value();
    CHECK(got_first[0] == peer);
    CHECK(got_second[0] == peer + 10);
    all.close().value();
  });
}

TEST_CASE("gloo: groups of the same ranks are apart, and those of others are made meanwhile") {
  std::mutex mutex;
  std::set<uint64_t> ids;
  ranks(4, [&](World& world) {
    Communicator all = world.communicator(Backend::kGloo, kOptions).value();
    const int first = world.rank() / 2 * 2;
    const std::vector<int> pair{first + 1, first};
    Communicator one = all.new_group(pair, kOptions).value();
    Communicator two = all.new_group(pair, kOptions).value();
    Communicator alone = one.new_group(std::vector<int>{one.rank()}, kOptions).value();
    CHECK(one.rank() == 1 - world.rank() % 2);
    CHECK(one.ranks() == std::vector<int>{first + 1, first});
    CHECK(contains(one.name(), "world/" + std::to_string(first + 1)));
    CHECK(alone.size() == 1);
    CHECK(works(one));
    CHECK(works(two));
    CHECK(works(alone));
    {
      const std::lock_guard lock(mutex);
      for (const Communicator* each : {&all, &one, &two})
        ids.insert(each->impl().parts().id);
    }
    all.close().value();
    CHECK(works(two));
  });
  CHECK(ids.size() == 5);  // the same on all members, and no other's
}

TEST_CASE("gloo: split groups by colour, orders by key, and leaves out who has none") {
  ranks(4, [](World& world) {
    Communicator all = world.communicator(Backend::kGloo, kOptions).value();
    const int color = world.rank() == 2 ? kNoColor : 5;
    std::optional<Communicator> group = all.split(color, -world.rank(), kOptions).value();
    REQUIRE(group.has_value() == (world.rank() != 2));
    if (group) {
      CHECK(group->ranks() == std::vector<int>{3, 1, 0});
      CHECK(works(*group));
    }
    Communicator half = all.split(world.rank() % 2, 0, kOptions).value().value();
    CHECK(half.size() == 2);
    CHECK(works(half));
    CHECK(works(all));
  });
}

TEST_CASE("gloo: a broken communicator shrinks, and grows again by who comes back") {
  ranks(3, [](World& world) {
    Communicator all = world.communicator(Backend::kGloo, kOptions).value();
    CHECK(works(all));
    if (world.rank() == 1) {
      all.abort("pretends to be lost").value();
      Communicator back = world.grow_into(Backend::kGloo, "grown", kOptions).value();
      CHECK(back.ranks() == std::vector<int>{0, 2, 1});
      CHECK(works(back));
      return;
    }
    std::vector<int> one{1};
    const Result<void> lost = all.all_reduce(one).wait();
    REQUIRE(!lost);
    CHECK(lost.error().code == ErrorCode::kPeerLost);
    Communicator rest = all.shrink(std::vector<int>{1}, named("rest")).value();
    CHECK(rest.ranks() == std::vector<int>{0, 2});
    CHECK(works(rest));
    Communicator grown = rest.grow(std::vector<int>{1}, named("grown")).value();
    CHECK(works(grown));
  });
}

TEST_CASE("gloo: who is done and closes at once does not spoil the making for others") {
  ranks(4, [](World& world) {
    for (int i = 0; i < 30; ++i) {
      Communicator all =
          world.communicator(Backend::kGloo, named("turn " + std::to_string(i))).value();
      if (world.rank() != i % 4) all.close().value();
    }
  });
}

TEST_CASE("gloo: who does not come to the making of a group is named") {
  ranks(3, [](World& world) {
    Communicator all = world.communicator(Backend::kGloo, kOptions).value();
    if (world.rank() != 1) {
      const auto group =
          all.new_group(std::vector<int>{0, 1, 2}, {.timeout = milliseconds(400), .name = "trio"});
      REQUIRE(!group);
      CHECK(group.error().code == ErrorCode::kTimeout);
      CHECK(group.error().ranks == std::vector<int>{1});
      CHECK(contains(group.error().message, "making communicator trio: rank 1 of 3"));
    }
    world.barrier("all are here", seconds(40)).value();
    CHECK(works(all));
  });
}

TEST_CASE("gloo: ranks that make different things are told so") {
  ranks(2, [](World& world) {
    Communicator all = world.communicator(Backend::kGloo, kOptions).value();
    CommunicatorOptions options = named("pair");
    options.checked = world.rank() == 1;
    const auto group = all.new_group(std::vector<int>{0, 1}, options);
    REQUIRE(!group);
    CHECK(group.error().code == ErrorCode::kMismatch);
    CHECK(group.error().ranks == std::vector<int>{1});
    CHECK(contains(group.error().message, "rank 1 makes a gloo communicator of 2 ranks, checked"));
  });
}

TEST_CASE("gloo: aborting a communicator ends the making of its group") {
  ranks(2, [](World& world) {
    Communicator all = world.communicator(Backend::kGloo, kOptions).value();
    if (world.rank() == 0) {
      std::thread other([&] {
        const auto store = world.impl().open_store("world/gloo//0", seconds(10)).value();
        while (!came(*store, "/meet/0"))
          std::this_thread::yield();
        all.abort("enough").value();
      });
      const auto group = all.new_group(std::vector<int>{0, 1}, kOptions);
      other.join();
      REQUIRE(!group);
      CHECK(group.error().code == ErrorCode::kAborted);
      CHECK(contains(group.error().message, "aborted: enough"));
    }
    world.barrier("done", seconds(40)).value();
  });
}

TEST_CASE("gloo: a timeout is told by the others as a lost peer or their own timeout") {
  ranks(2, [](World& world) {
    Communicator all = world.communicator(Backend::kGloo, kOptions).value();
    std::vector<double> numbers(1 << 16);
    if (world.rank() == 0) {
      const Result<void> late =
          all.all_reduce(numbers, ReduceOp::kSum, {.timeout = milliseconds(200)}).wait();
      REQUIRE(!late);
      CHECK(late.error().code == ErrorCode::kTimeout);
      CHECK(contains(late.error().message,
                     "all_reduce #1 (524 kB float64) of communicator world: timeout after 200 ms"));
      all.close().value();
    }
    world.barrier("gave up", seconds(40)).value();
    if (world.rank() == 1) CHECK(!all.all_reduce(numbers).wait());
  });
}

TEST_CASE("gloo: options that cannot be are refused before anybody is waited for") {
  ranks(2, [](World& world) {
    if (world.rank() == 0) {
      CommunicatorOptions wrong = named("right");
      wrong.operation_timeout = milliseconds(-1);
      const Result<Communicator> refused = world.communicator(Backend::kGloo, wrong);
      REQUIRE(!refused);
      CHECK(refused.error().code == ErrorCode::kInvalidArgument);
      CHECK(refused.error().message ==
            "communicator: options.operation_timeout: -1 ms: it must be positive");
    }
    // Nor does it count as one of those that were made.
    world.communicator(Backend::kGloo, named("right")).value().close().value();
  });
}

// Those whose time is over at about the same time hear of each other. They listen for a moment
// only, so that on a busy machine not each round tells all.
TEST_CASE("gloo: a timeout tells where the others are") {
  std::atomic<bool> told{false};
  ranks(4, [&](World& world) {
    for (int round = 0; round < 4; ++round) {
      const std::string name = "round " + std::to_string(round);
      Communicator all = world.communicator(Backend::kGloo, named(name)).value();
      std::vector<double> numbers(1 << 10);
      world.barrier(name + " begins", seconds(40)).value();
      const OpOptions soon{.timeout = milliseconds(300)};
      Work work;
      if (world.rank() < 2) work = all.all_reduce(numbers, ReduceOp::kSum, soon);
      if (world.rank() == 2) work = all.recv(numbers, 3, 0, soon);
      const Result<void> late = work.wait();
      CHECK(late.has_value() == (world.rank() == 3));
      if (world.rank() == 0 &&
          late.error().message.ends_with("rank 1 was in it too; rank 2 was in recv #1 from rank 3; "
                                         "nothing is heard of rank 3"))
        told = true;
      world.barrier(name + " ends", seconds(40)).value();
    }
  });
  CHECK(told);
}

}  // namespace muster::comm::detail
