// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "nccl/core/communicator_impl.h"
#include "nccl/core/fake_backend.h"
#include "nccl/core/making_steps.h"
#include "nccl/core/ranks.h"
#include "nccl/join/world_impl.h"
#include "store/deadline.h"

namespace muster::comm::detail {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Communicator checked(World& world, Duration operation_timeout = seconds(40)) {
  CommunicatorOptions options{.timeout = seconds(40), .checked = true};
  options.operation_timeout = operation_timeout;
  return world.communicator(Backend::kGloo, options).value();
}

// Rank 1 of three does another thing than the others: all are told the same, and go on.
void mismatch(const std::function<Work(Communicator&)>& odd,
              const std::function<Work(Communicator&)>& others, const std::string& says) {
  ranks(3, [&](World& world) {
    Communicator all = checked(world);
    all.barrier().wait().value();
    const Result<void> result = (world.rank() == 1 ? odd(all) : others(all)).wait();
    REQUIRE(!result);
    CHECK(result.error().code == ErrorCode::kMismatch);
    CHECK(result.error().ranks == std::vector<int>{1});
    CHECK(contains(result.error().message, says));
    all.barrier().wait().value();  // nothing was begun
  });
}

std::vector<float>& numbers() {
  static thread_local std::vector<float> mine(6);
  return mine;
}
Work sum(Communicator& all) {
  return all.all_reduce(numbers());
}

}  // namespace

TEST_CASE("checked: another operation is named by rank") {
  mismatch([](Communicator& all) { return all.barrier(); }, sum,
           "ranks 0 and 2 call all_reduce of 6 float32, sum; rank 1 calls barrier");
}

TEST_CASE("checked: another size, type or reduction is named by rank") {
  mismatch([](Communicator& all) { return all.all_reduce(std::span(numbers()).first(5)); }, sum,
           "rank 1 calls all_reduce of 5 float32, sum");
  mismatch(
      [](Communicator& all) {
        static thread_local std::vector<int> whole(6);
        return all.all_reduce(whole);
      },
      sum, "rank 1 calls all_reduce of 6 int32, sum");
  mismatch([](Communicator& all) { return all.all_reduce(numbers(), ReduceOp::kMax); }, sum,
           "rank 1 calls all_reduce of 6 float32, max");
}

TEST_CASE("checked: another root is named by rank") {
  mismatch([](Communicator& all) { return all.broadcast(numbers(), 2); },
           [](Communicator& all) { return all.broadcast(numbers(), 0); },
           "rank 1 calls broadcast of 6 float32, root 2");
}

TEST_CASE("checked: who does not come is named, and the others are told apart") {
  ranks(3, [](World& world) {
    Communicator all = checked(world, milliseconds(500));
    if (world.rank() != 2) {
      const Result<void> late = all.all_reduce(numbers()).wait();
      REQUIRE(!late);
      CHECK(late.error().code == ErrorCode::kTimeout);
      CHECK(late.error().ranks == std::vector<int>{2});
      CHECK(contains(late.error().message, "rank 2"));
      CHECK(contains(late.error().message, "timeout after 500 ms"));
    }
    world.barrier("late", seconds(40)).value();
  });
}

TEST_CASE("checked: all operations pass, in groups and in the background too") {
  ranks(4, [](World& world) {
    Communicator all = checked(world);
    Communicator half = all.split(world.rank() % 2, 0, {.timeout = seconds(40)}).value().value();
    std::vector<int> few{1};
    std::vector<int> many(4);
    all.all_gather(few, many).wait().value();
    all.gather(few, many, 3).wait().value();
    all.scatter(many, few, 0).wait().value();
    Work first = all.all_reduce(few, ReduceOp::kSum, {.async = true});
    Work second = half.all_reduce(many, ReduceOp::kSum, {.async = true});
    second.wait().value();
    first.wait().value();
    const std::vector<size_t> counts{1, 2, 0, 1};
    std::vector<int> in(counts[static_cast<size_t>(world.rank())]);
    all.all_gather(in, many, counts).wait().value();
    all.close().value();
  });
}

TEST_CASE("checked: all_to_all's counts are compared crosswise") {
  ranks(2, [](World& world) {
    Communicator all = checked(world);
    std::vector<int> in(4);
    std::vector<int> out(4);
    const std::array<size_t, 2> sent{1, 3};
    const std::array<size_t, 2> right =
        world.rank() == 0 ? std::array<size_t, 2>{1, 1} : std::array<size_t, 2>{3, 3};
    out.resize(right[0] + right[1]);
    all.all_to_all(in, sent, out, right).wait().value();
    const std::array<size_t, 2> wrong{2, 2};
    out.resize(4);
    const Result<void> result = all.all_to_all(in, sent, out, wrong).wait();
    REQUIRE(!result);
    CHECK(result.error().code == ErrorCode::kMismatch);
    CHECK(contains(result.error().message, "rank 0 sends 1 elements to rank 0, which expects 2"));
  });
}

TEST_CASE("checked: messages of unlike size are told to both, equal ones arrive in order") {
  ranks(2, [](World& world) {
    Communicator all = checked(world);
    const int peer = 1 - world.rank();
    std::vector<int> values{world.rank(), world.rank() + 10, world.rank() + 20};
    std::vector<int> got(3, -1);
    std::vector<Work> works;
    for (size_t i = 0; i < 3; ++i)
      works.push_back(all.irecv(std::span(got).subspan(i, 1), peer));
    for (size_t i = 0; i < 3; ++i)
      works.push_back(all.isend(std::span(values).subspan(i, 1), peer));
    for (size_t i = works.size(); i-- > 0;)  // the last one first
      works[i].wait().value();
    CHECK(got == std::vector<int>{peer, peer + 10, peer + 20});
    const auto begin = std::chrono::steady_clock::now();
    const Result<void> unlike =
        (world.rank() == 0 ? all.send(values, 1) : all.recv(std::span(got).first(2), 0)).wait();
    REQUIRE(!unlike);
    CHECK(std::chrono::steady_clock::now() - begin < seconds(20));  // long before its deadline
    CHECK(unlike.error().code == ErrorCode::kMismatch);
    CHECK(contains(unlike.error().message, "rank 0 sends 3 int32, rank 1 receives 2 int32"));
    const std::vector<P2p> both{P2p::send(values, peer, 4), P2p::recv(got, peer, 4)};
    all.batch(both).wait().value();
    CHECK(got[2] == peer + 20);
  });
}

TEST_CASE("checked: who asks again for a message that differs hears the same again") {
  ranks(2, [](World& world) {
    BackendPlan plan;
    plan.rank = world.rank();
    plan.size = 2;
    plan.world_ranks = {0, 1};
    const auto store = world.impl().open_store("again", seconds(40)).value();
    const auto checker = std::make_shared<Checker>(plan, store, store, Meeting::Stopped());
    FakeBackend backend(std::make_shared<Script>());
    std::vector<int> values(world.rank() == 0 ? 3 : 2);
    Operation message;
    message.kind = world.rank() == 0 ? OpKind::kSend : OpKind::kRecv;
    message.root_or_peer = 1 - world.rank();
    message.in = values;
    message.out = values;
    CheckedPending pending(checker, backend, {message}, deadline_in(seconds(40)));
    const std::optional<Result<void>> first = pending.wait(deadline_in(seconds(40)));
    REQUIRE(first);
    REQUIRE(!*first);
    CHECK(first->error().code == ErrorCode::kMismatch);
    const std::optional<Result<void>> again = pending.poll();
    REQUIRE(again);
    REQUIRE(!*again);
    CHECK(again->error().message == first->error().message);
    world.barrier("asked", seconds(40)).value();
  });
}

TEST_CASE("checked: a rank that cannot open its connections makes no communicator for anybody") {
  ranks(2, [](World& world) {
    WorldContext context = context_of(world.impl().shared_from_this());
    int opened = 0;
    const auto open = context.open_store;
    context.open_store = [&](const std::string& prefix, Duration timeout) {
      if (++opened > 1 && world.rank() == 1)
        return Result<std::shared_ptr<muster::Store>>(Error{ErrorCode::kStoreLost, "no more"});
      return open(prefix, timeout);
    };
    Making making;
    making.prefix = "refused";
    making.members = {0, 1};
    making.options = {.checked = true, .name = "refused"};
    making.deadline = deadline_in(milliseconds(1500));
    making.maker = [](const BackendPlan&) -> Result<std::unique_ptr<CommBackend>> {
      return std::unique_ptr<CommBackend>(
          std::make_unique<FakeBackend>(std::make_shared<Script>()));
    };
    const Result<Communicator> made = make(context, making);
    REQUIRE(!made);
    CHECK(made.error().code == (world.rank() == 1 ? ErrorCode::kStoreLost : ErrorCode::kTimeout));
    world.barrier("tried", seconds(40)).value();
  });
}

TEST_CASE("checked: a message whose partner does not come says who") {
  ranks(2, [](World& world) {
    Communicator all = checked(world, milliseconds(300));
    if (world.rank() == 0) {
      const Result<void> late = all.send(numbers(), 1).wait();
      REQUIRE(!late);
      CHECK(contains(late.error().message,
                     "send #1 to rank 1 (24 B float32) of communicator world: "
                     "timeout after 300 ms; rank 1 has not called recv"));
      CHECK(late.error().ranks == std::vector<int>{1});
    }
    world.barrier("late", seconds(40)).value();
  });
}

TEST_CASE("checked: the store does not fill up") {
  ranks(2, [](World& world) {
    Communicator all = checked(world);
    for (int i = 0; i < 20; ++i) {
      all.all_reduce(numbers()).wait().value();
      if (world.rank() == 0)
        all.send(numbers(), 1).wait().value();
      else
        all.recv(numbers(), 0).wait().value();
    }
    all.barrier().wait().value();
    world.barrier("after", seconds(40)).value();
    if (world.rank() == 0) {
      const auto store = world.impl().open_store("world/gloo//0", seconds(10)).value();
      size_t left = 0;
      const std::vector<std::string> keys = store->list_keys().value();
      for (const std::string& key : keys)
        if (key.starts_with("check/") || key.starts_with("message/")) ++left;
      CHECK(left > 0);
      CHECK(left <= 6);  // of the last two collectives
    }
    world.barrier("counted", seconds(40)).value();
  });
}

TEST_CASE("checked: an abort ends the comparison") {
  ranks(2, [](World& world) {
    Communicator all = checked(world);
    if (world.rank() == 0) {
      Work work = all.all_reduce(numbers(), ReduceOp::kSum, {.async = true});
      CHECK(!work.wait(milliseconds(50)));
      all.abort("enough").value();
      CHECK(work.wait().error().code == ErrorCode::kAborted);
    }
    world.barrier("done", seconds(40)).value();
  });
}

}  // namespace muster::comm::detail
