// SPDX-License-Identifier: Apache-2.0
// The public interface on NCCL, as a program uses it: processes join a world over the store and
// work on the device memory of the test double.
#include <doctest/doctest.h>
#include <muster/comm.h>

#include <array>
#include <cstdlib>
#include <thread>

#include "nccl/cuda/on_double.h"

namespace mc = muster::comm;
using mc::detail::Device;
using mc::detail::expect;
using mc::detail::expect_values;
using mc::detail::filled;
using mc::detail::RankPlace;
using Numbers = std::vector<int>;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

struct Member {
  mc::World world;
  mc::Communicator all;
};

Member join(const RankPlace& place, mc::CommunicatorOptions options = {}) {
  mc::detail::use_double();
  const std::string port = std::to_string(place.store_port);
  setenv("MASTER_ADDR", "127.0.0.1", 1);
  setenv("MASTER_PORT", port.c_str(), 1);
  setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
  setenv("LOCAL_RANK", std::to_string(place.rank).c_str(), 1);
  options.timeout = seconds(30);
  mc::World world = mc::World::join({.rank = place.rank, .world_size = place.size}).value();
  mc::Communicator all = world.communicator(mc::Backend::kNccl, options).value();
  return {std::move(world), std::move(all)};
}

void expect_sum(mc::Communicator& all, int each, int sum, const std::string& what) {
  Device numbers(filled(5, each));
  all.all_reduce(numbers).wait().value();
  expect_values(numbers, filled(5, sum), what);
}

void expect_code(const mc::Result<void>& result, mc::ErrorCode code, const std::string& what) {
  expect(!result, what + ": it succeeded");
  expect(result.error().code == code, what + ": " + result.error().message);
}

// 0, 1, 2, ... from `first` on.
Numbers count_up(int first, size_t count) {
  Numbers numbers(count);
  for (size_t i = 0; i < count; ++i)
    numbers[i] = first + static_cast<int>(i);
  return numbers;
}

void collectives_with_a_root(mc::Communicator& all) {
  const int rank = all.rank();
  Device told(filled(4, rank));
  all.broadcast(told, 1).wait().value();
  expect_values(told, filled(4, 1), "broadcast");
  Device sum(filled(4, -1));
  Device own(filled(4, rank + 1));
  all.reduce(own, sum, mc::ReduceOp::kProduct, 2).wait().value();
  expect_values(sum, filled(4, rank == 2 ? 6 : -1), "reduce");
  Device whole(rank == 0 ? count_up(0, 6) : filled(6, -1));
  Device part(filled(2, -1));
  all.scatter(whole, part, 0).wait().value();
  expect_values(part, count_up(2 * rank, 2), "scatter");
  Device back(filled(6, -1));
  all.gather(part, back, 0).wait().value();
  expect_values(back, rank == 0 ? count_up(0, 6) : filled(6, -1), "gather");
}

void collectives_of_all(mc::Communicator& all) {
  const int rank = all.rank();
  Device part(count_up(2 * rank, 2));
  Device whole(filled(6, -1));
  all.all_gather(part, whole).wait().value();
  expect_values(whole, count_up(0, 6), "all_gather");
  all.reduce_scatter(whole, part, mc::ReduceOp::kSum).wait().value();
  expect_values(part, Numbers{6 * rank, 6 * rank + 3}, "reduce_scatter");
  Device exchanged(filled(6, -1));
  all.all_to_all(whole, exchanged).wait().value();
  const int a = 2 * rank;
  expect_values(exchanged, {a, a + 1, a, a + 1, a, a + 1}, "all_to_all");
}

// Rank r has r + 1 numbers.
void collectives_of_several_sizes(mc::Communicator& all) {
  const auto rank = static_cast<size_t>(all.rank());
  const std::vector<size_t> counts = {1, 2, 3};
  Device own(filled(rank + 1, all.rank()));
  Device whole(filled(6, -1));
  all.all_gather(own, whole, counts).wait().value();
  expect_values(whole, {0, 1, 1, 2, 2, 2}, "all_gather of several sizes");
  all.reduce_scatter(whole, own, counts, mc::ReduceOp::kMax).wait().value();
  expect_values(own, filled(rank + 1, all.rank()), "reduce_scatter of several sizes");
  const std::vector<size_t> to_each(3, rank + 1);
  Device sent(filled(3 * (rank + 1), all.rank()));
  all.all_to_all(sent, to_each, whole, counts).wait().value();
  expect_values(whole, {0, 1, 1, 2, 2, 2}, "all_to_all of several sizes");
}

}  // namespace

TEST_CASE("every collective through the world's communicator") {
  mc::detail::run_ranks(3, [](const RankPlace& place) {
    Member member = join(place);
    collectives_with_a_root(member.all);
    collectives_of_all(member.all);
    collectives_of_several_sizes(member.all);
    member.all.barrier().wait().value();
    member.all.close().value();
  });
}

TEST_CASE("messages, a batch in a circle, a group guard, and works that are waited for later") {
  mc::detail::run_ranks(3, [](const RankPlace& place) {
    auto [world, all] = join(place);
    const int next = (all.rank() + 1) % 3;
    const int before = (all.rank() + 2) % 3;
    Device out(filled(3, all.rank()));
    Device in(filled(3, -1));
    all.batch(std::array{mc::P2p::send(out, next), mc::P2p::recv(in, before)}).wait().value();
    expect_values(in, filled(3, before), "batch");
    Device sum(filled(3, all.rank()));
    Device second(filled(3, -1));
    mc::GroupGuard group;
    mc::Work reducing = all.all_reduce(sum);
    mc::Work sending = all.isend(out, before);
    mc::Work receiving = all.irecv(second, next);
    group.end().wait().value();
    for (mc::Work* work : {&reducing, &sending, &receiving})
      work->wait().value();
    expect_values(sum, filled(3, 3), "all_reduce in a group");
    expect_values(second, filled(3, next), "recv in a group");
    all.close().value();
  });
}

TEST_CASE("a group that is dropped begins nothing") {
  mc::detail::run_ranks(2, [](const RankPlace& place) {
    auto [world, all] = join(place);
    Device numbers(filled(5, 1));
    mc::Work forgotten;
    {
      mc::GroupGuard group;
      static_cast<void>(forgotten = all.all_reduce(numbers));
    }
    expect_code(forgotten.wait(), mc::ErrorCode::kAborted, "forgotten");
    expect_sum(all, 2, 4, "afterwards");
    all.close().value();
  });
}

TEST_CASE("children: a group, a split, and what is left when one rank leaves") {
  mc::detail::run_ranks(3, [](const RankPlace& place) {
    auto [world, all] = join(place);
    const int rank = all.rank();
    const std::array<int, 2> ends = {2, 0};
    if (rank != 1) {
      mc::Communicator pair = all.new_group(ends).value();
      expect(pair.rank() == (rank == 2 ? 0 : 1), "the order of a new group");
      expect_sum(pair, rank, 2, "new_group");
      pair.close().value();
    }
    std::optional<mc::Communicator> half = all.split(rank == 1 ? mc::kNoColor : 0, -rank).value();
    expect(half.has_value() == (rank != 1), "split");
    if (half) expect_sum(*half, rank, 2, "split");
    if (half) half->close().value();
    const std::array<int, 1> excluded = {1};
    if (rank != 1) {
      mc::Communicator rest = all.shrink(excluded).value();
      expect_sum(rest, rank, 2, "shrink");
      rest.close().value();
    }
    place.meet("done");
    expect(static_cast<bool>(all.abort("the test is over")), "abort");
  });
}

TEST_CASE("checked mode names a call that differs before it hangs") {
  mc::detail::run_ranks(2, [](const RankPlace& place) {
    auto [world, all] = join(place, {.checked = true});
    expect_sum(all, 1, 2, "checked");
    Device numbers(filled(place.rank == 0 ? 4 : 8, 1));
    const mc::Result<void> wrong = all.all_reduce(numbers).wait();
    expect_code(wrong, mc::ErrorCode::kMismatch, "other sizes");
    expect(static_cast<bool>(all.abort()), "abort");
  });
}

TEST_CASE("an operation that a rank never enters times out, and the process goes on") {
  mc::detail::run_ranks(2, [](const RankPlace& place) {
    auto [world, all] = join(place);
    expect_sum(all, 1, 2, "before");
    if (place.rank == 0) {
      Device numbers(filled(4, 1));
      expect_code(
          all.all_reduce(numbers, mc::ReduceOp::kSum, {.timeout = milliseconds(300)}).wait(),
          mc::ErrorCode::kTimeout, "alone");
      expect(static_cast<bool>(all.abort()), "abort");
    }
    place.meet("timed out");
    if (place.rank == 1) expect(static_cast<bool>(all.abort()), "abort");
    mc::CommunicatorOptions options;
    options.name = "second";
    options.timeout = seconds(30);
    mc::Communicator second = world.communicator(mc::Backend::kNccl, options).value();
    expect_sum(second, 1, 2, "another communicator");
    second.close().value();
  });
}

TEST_CASE("abort from another thread ends a wait at once") {
  mc::detail::run_ranks(2, [](const RankPlace& place) {
    auto [world, all] = join(place);
    expect_sum(all, 1, 2, "before");
    if (place.rank == 0) {
      Device numbers(filled(4, 1));
      mc::Work work = all.all_reduce(numbers);
      std::thread aborter([&all = all] { static_cast<void>(all.abort("enough")); });
      const mc::Result<void> ended = work.wait();
      aborter.join();
      expect_code(ended, mc::ErrorCode::kAborted, "aborted");
      expect(ended.error().message.find("enough") != std::string::npos, ended.error().message);
      expect_code(all.barrier().wait(), mc::ErrorCode::kAborted, "later");
    }
    place.meet("aborted");
    if (place.rank == 1) expect(static_cast<bool>(all.abort()), "abort");
  });
}

TEST_CASE("host memory, and memory that cannot be registered, are refused") {
  mc::detail::run_ranks(1, [](const RankPlace& place) {
    auto [world, all] = join(place);
    Numbers host(4, 1);
    expect_code(all.all_reduce(host).wait(), mc::ErrorCode::kInvalidArgument, "host memory");
    Device numbers(filled(4, 1));
    { const mc::RegisteredBuffer known = all.register_buffer(numbers).value(); }
    expect_sum(all, 7, 7, "afterwards");
    all.close().value();
  });
}
