// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <numeric>

#include "nccl/gloo/ranks.h"

namespace muster::comm::detail {
namespace {

using std::chrono::seconds;

void run(CommBackend& backend, const Operation& operation) {
  backend.run({&operation, 1}, in(seconds(20))).value();
}

Operation collective(OpKind kind, ConstBuffer input, Buffer output, int root = 0,
                     ReduceOp op = ReduceOp::kSum) {
  Operation operation;
  operation.kind = kind;
  operation.reduce = op;
  operation.root_or_peer = root;
  operation.in = input;
  operation.out = output;
  return operation;
}

template <typename T>
void expect_equal(const std::vector<T>& got, const std::vector<T>& wanted,
                  const std::string& what) {
  std::string text = what + ": got";
  for (size_t i = 0; i < std::min<size_t>(got.size(), 12); ++i)
    text += " " + std::to_string(got[i]);
  expect(got == wanted, text);
}

}  // namespace

TEST_CASE("each collective does what it says with three ranks") {
  run_ranks(3, [](const RankPlace& place) {
    const auto backend = place.backend();
    const int rank = place.rank;
    std::vector<int> buffer(4, rank + 1);
    run(*backend, collective(OpKind::kAllReduce, {}, buffer));
    expect_equal<int>(buffer, {6, 6, 6, 6}, "all_reduce in place");
    std::vector<int> input(4, rank + 1);
    std::vector<int> out(4, -1);
    run(*backend, collective(OpKind::kAllReduce, input, out, 0, ReduceOp::kMax));
    expect_equal<decltype(out)::value_type>(out, {3, 3, 3, 3}, "all_reduce");
    run(*backend, collective(OpKind::kAllReduce, input, out, 0, ReduceOp::kAverage));
    expect_equal<decltype(out)::value_type>(out, {2, 2, 2, 2}, "average");

    std::vector<int> from_root(3, rank);
    run(*backend, collective(OpKind::kBroadcast, from_root, from_root, 1));
    expect_equal<decltype(from_root)::value_type>(from_root, {1, 1, 1}, "broadcast");

    std::vector<int> reduced(4, -1);
    run(*backend, collective(OpKind::kReduce, input, reduced, 2));
    expect_equal(reduced, std::vector<int>(4, rank == 2 ? 6 : -1), "reduce");
    expect_equal(input, std::vector<int>(4, rank + 1), "what reduce reads");

    std::vector<int> parts{0, 1, 10, 11, 20, 21};
    std::vector<int> part(2, -1);
    run(*backend, collective(OpKind::kScatter, parts, part, 1));
    expect_equal<decltype(part)::value_type>(part, {rank * 10, rank * 10 + 1}, "scatter");

    std::vector<int> gathered(6, -1);
    run(*backend, collective(OpKind::kGather, part, gathered, 1));
    expect_equal(gathered, rank == 1 ? parts : std::vector<int>(6, -1), "gather");
    gathered.assign(6, -1);
    run(*backend, collective(OpKind::kAllGather, part, gathered));
    expect_equal(gathered, parts, "all_gather");

    std::vector<int> scattered(2, -1);
    run(*backend, collective(OpKind::kReduceScatter, parts, scattered));
    expect_equal<decltype(scattered)::value_type>(scattered, {rank * 30, rank * 30 + 3},
                                                  "reduce_scatter");

    std::vector<int> sent{rank * 10, rank * 10 + 1, rank * 10 + 2};
    std::vector<int> got(3, -1);
    run(*backend, collective(OpKind::kAllToAll, sent, got));
    expect_equal<decltype(got)::value_type>(got, {rank, rank + 10, rank + 20}, "all_to_all");
    run(*backend, collective(OpKind::kBarrier, {}, {}));
    backend->close(in(seconds(5))).value();
  });
}

TEST_CASE("parts may be of different sizes, also empty") {
  run_ranks(3, [](const RankPlace& place) {
    const auto backend = place.backend();
    const auto rank = static_cast<size_t>(place.rank);
    const std::vector<size_t> counts{2, 0, 3};
    const std::vector<int> all{0, 1, 20, 21, 22};
    const std::vector<std::vector<int>> parts{{0, 1}, {}, {20, 21, 22}};

    std::vector<int> gathered(5, -1);
    Operation gather = collective(OpKind::kAllGather, parts[rank], gathered);
    gather.counts = counts;
    run(*backend, gather);
    expect_equal(gathered, all, "all_gather");

    std::vector<int> scattered(counts[rank], -1);
    Operation scatter = collective(OpKind::kReduceScatter, all, scattered);
    scatter.counts = counts;
    run(*backend, scatter);
    std::vector<int> wanted = parts[rank];
    for (int& value : wanted)
      value *= 3;
    expect_equal(scattered, wanted, "reduce_scatter");

    // Rank r sends r + i numbers to rank i.
    Operation exchange;
    exchange.kind = OpKind::kAllToAll;
    std::vector<int> sent;
    std::vector<int> expected;
    for (size_t i = 0; i < 3; ++i) {
      exchange.counts.push_back(rank + i);
      exchange.out_counts.push_back(i + rank);
      sent.insert(sent.end(), rank + i, static_cast<int>(rank * 10 + i));
      expected.insert(expected.end(), i + rank, static_cast<int>(i * 10 + rank));
    }
    std::vector<int> got(expected.size(), -1);
    exchange.in = sent;
    exchange.out = got;
    run(*backend, exchange);
    expect_equal(got, expected, "all_to_all");
    backend->close(in(seconds(5))).value();
  });
}

TEST_CASE("exchanges in one batch do not wait for each other in a circle") {
  run_ranks(3, [](const RankPlace& place) {
    const auto backend = place.backend();
    const std::vector<int> mine(100'000, place.rank);
    std::vector<int> left(mine.size(), -1);
    std::vector<Operation> batch(2);
    batch[0] = {.kind = OpKind::kSend, .root_or_peer = (place.rank + 1) % 3, .tag = 7, .in = mine};
    batch[1] = {.kind = OpKind::kRecv, .root_or_peer = (place.rank + 2) % 3, .tag = 7, .out = left};
    backend->run(batch, in(seconds(20))).value();
    expect(left == std::vector<int>(mine.size(), (place.rank + 2) % 3), "from the left");
    backend->close(in(seconds(5))).value();
  });
}

TEST_CASE("messages that were begun may end in any order") {
  run_ranks(2, [](const RankPlace& place) {
    const auto backend = place.backend();
    const int peer = 1 - place.rank;
    std::vector<int> first(10), second(10);
    const std::vector<int> one(10, 1), two(10, 2);
    if (place.rank == 0) {
      const Operation late{.kind = OpKind::kRecv, .root_or_peer = peer, .tag = 1, .out = first};
      const Operation early{.kind = OpKind::kRecv, .root_or_peer = peer, .tag = 2, .out = second};
      const auto late_work = backend->start({&late, 1}, in(seconds(20))).value();
      const auto early_work = backend->start({&early, 1}, in(seconds(20))).value();
      early_work->wait(in(seconds(20))).value().value();
      expect_equal(second, two, "tag 2");
      expect(!late_work->poll(), "tag 1 has come early");
      expect(!late_work->wait(in(std::chrono::milliseconds(150))), "tag 1 has come early");
      run(*backend, collective(OpKind::kBarrier, {}, {}));
      late_work->wait(in(seconds(20))).value().value();
      expect_equal(first, one, "tag 1");
    } else {
      const Operation early{.kind = OpKind::kSend, .root_or_peer = peer, .tag = 2, .in = two};
      run(*backend, early);
      run(*backend, collective(OpKind::kBarrier, {}, {}));
      const Operation late{.kind = OpKind::kSend, .root_or_peer = peer, .tag = 1, .in = one};
      run(*backend, late);
    }
    run(*backend, collective(OpKind::kBarrier, {}, {}));
    backend->close(in(seconds(5))).value();
  });
}

TEST_CASE("16-bit numbers are rounded once") {
  run_ranks(4, [](const RankPlace& place) {
    const auto backend = place.backend();
    // 256 + 1 + 1 + 1 is 259, between 258 and 260 in bfloat16; step by step it would stay at 256.
    std::vector<Bfloat16> numbers(7, Bfloat16::from(place.rank == 0 ? 256 : 1));
    run(*backend, collective(OpKind::kAllReduce, {}, numbers));
    for (const Bfloat16 number : numbers) {
      expect(number.to_float() == 260, "sum " + std::to_string(number.to_float()));
    }
    // Their sum is beyond float16, their average is not.
    std::vector<Float16> large(9, Float16::from(60'000));
    run(*backend, collective(OpKind::kAllReduce, {}, large, 0, ReduceOp::kAverage));
    for (const Float16 number : large) {
      expect(number.to_float() == 60'000, "average " + std::to_string(number.to_float()));
    }
    backend->close(in(seconds(5))).value();
  });
}

TEST_CASE("whole averages are rounded towards zero") {
  run_ranks(2, [](const RankPlace& place) {
    const auto backend = place.backend();
    std::vector<int64_t> numbers{place.rank == 0 ? -4 : 1, place.rank == 0 ? 4 : 1};
    run(*backend, collective(OpKind::kAllReduce, {}, numbers, 0, ReduceOp::kAverage));
    expect_equal<decltype(numbers)::value_type>(numbers, {-1, 2}, "averages");
    backend->close(in(seconds(5))).value();
  });
}

}  // namespace muster::comm::detail
