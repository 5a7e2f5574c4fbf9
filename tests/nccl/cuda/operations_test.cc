// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>

#include "nccl/cuda/events.h"
#include "nccl/cuda/on_double.h"

namespace muster::comm::detail {
namespace {

using std::chrono::seconds;

// Everything that has a call of its own in NCCL, or gets one made of others.
void each_operation(CommBackend& backend, int rank) {
  Device buffer(filled(4, rank + 1));
  run(backend, operation(OpKind::kAllReduce, {}, buffer)).value();
  expect_values(buffer, filled(4, 6), "all_reduce in place");
  Device input(filled(4, rank + 1));
  Device out(filled(4, -1));
  run(backend, operation(OpKind::kAllReduce, input, out, 0, ReduceOp::kMax)).value();
  expect_values(out, filled(4, 3), "max");
  run(backend, operation(OpKind::kAllReduce, input, out, 0, ReduceOp::kMin)).value();
  expect_values(out, filled(4, 1), "min");
  run(backend, operation(OpKind::kAllReduce, input, out, 0, ReduceOp::kProduct)).value();
  expect_values(out, filled(4, 6), "product");
  Device negative(filled(1, rank == 0 ? -5 : 0));
  run(backend, operation(OpKind::kAllReduce, {}, negative, 0, ReduceOp::kAverage)).value();
  expect_values(negative, {-1}, "average of whole numbers is rounded towards zero");

  Device from_root(filled(3, rank));
  run(backend, operation(OpKind::kBroadcast, from_root, from_root, 1)).value();
  expect_values(from_root, filled(3, 1), "broadcast");
  Device reduced(filled(4, -1));
  run(backend, operation(OpKind::kReduce, input, reduced, 2)).value();
  expect_values(reduced, filled(4, rank == 2 ? 6 : -1), "reduce");

  Device parts({0, 1, 10, 11, 20, 21});
  Device part(filled(2, -1));
  const bool root = rank == 1;
  run(backend, operation(OpKind::kScatter, root ? ConstBuffer(parts) : ConstBuffer(), part, 1))
      .value();
  expect_values(part, {rank * 10, rank * 10 + 1}, "scatter");
  Device gathered(filled(6, -1));
  run(backend, operation(OpKind::kGather, part, root ? Buffer(gathered) : Buffer(), 1)).value();
  expect_values(gathered, root ? parts.values() : filled(6, -1), "gather");
  run(backend, operation(OpKind::kAllGather, part, gathered)).value();
  expect_values(gathered, parts.values(), "all_gather");
  Device scattered(filled(2, -1));
  run(backend, operation(OpKind::kReduceScatter, parts, scattered)).value();
  expect_values(scattered, {rank * 30, rank * 30 + 3}, "reduce_scatter");
  Device sent({rank * 10, rank * 10 + 1, rank * 10 + 2});
  Device got(filled(3, -1));
  run(backend, operation(OpKind::kAllToAll, sent, got)).value();
  expect_values(got, {rank, rank + 10, rank + 20}, "all_to_all");
  run(backend, operation(OpKind::kBarrier, {}, {})).value();
}

void parts_of_different_sizes(CommBackend& backend, int rank_number) {
  const auto rank = static_cast<size_t>(rank_number);
  const std::vector<size_t> counts{2, 0, 3};
  const std::vector<std::vector<int>> parts{{0, 1}, {}, {20, 21, 22}};
  Device part(parts[rank]);
  Device gathered(filled(5, -1));
  Operation gather = operation(OpKind::kAllGather, part, gathered);
  gather.counts = counts;
  run(backend, gather).value();
  expect_values(gathered, {0, 1, 20, 21, 22}, "all_gather");

  Device all({0, 1, 20, 21, 22});
  Device scattered(filled(counts[rank], -1));
  Operation scatter = operation(OpKind::kReduceScatter, all, scattered);
  scatter.counts = counts;
  run(backend, scatter).value();
  std::vector<int> wanted = parts[rank];
  for (int& value : wanted)
    value *= 3;
  expect_values(scattered, wanted, "reduce_scatter");

  // Rank r sends r + i numbers to rank i.
  std::vector<int> outgoing;
  std::vector<int> incoming;
  Operation exchange;
  for (size_t i = 0; i < 3; ++i) {
    exchange.counts.push_back(rank + i);
    exchange.out_counts.push_back(i + rank);
    outgoing.insert(outgoing.end(), rank + i, static_cast<int>(rank * 10 + i));
    incoming.insert(incoming.end(), rank + i, static_cast<int>(i * 10 + rank));
  }
  Device sent(outgoing);
  Device got(filled(incoming.size(), -1));
  exchange.kind = OpKind::kAllToAll;
  exchange.in = sent;
  exchange.out = got;
  run(backend, exchange).value();
  expect_values(got, incoming, "all_to_all");
}

}  // namespace

TEST_CASE("each operation does what it says, with NCCL's calls for it and without them") {
  for (const Nccl version : {Nccl::kToday, Nccl::kOld}) {
    run_ranks(3, [version](const RankPlace& place) {
      use_double(version);
      const auto backend = make_backend(place);
      test::use_device(Backend::kNccl, place.rank);
      each_operation(*backend, place.rank);
      parts_of_different_sizes(*backend, place.rank);
      backend->close(in(seconds(10))).value();
    });
  }
}

TEST_CASE("a rank alone can do all of it too") {
  run_ranks(1, [](const RankPlace& place) {
    use_double();
    const auto backend = make_backend(place);
    Device in({7, 8});
    Device out(filled(2, -1));
    for (const OpKind kind :
         {OpKind::kAllReduce, OpKind::kBroadcast, OpKind::kReduce, OpKind::kScatter,
          OpKind::kGather, OpKind::kAllGather, OpKind::kReduceScatter, OpKind::kAllToAll}) {
      run(*backend, operation(kind, in, out)).value();
      expect_values(out, {7, 8}, to_string(kind));
    }
  });
}

TEST_CASE("operations without elements end at once, and in order with others") {
  run_ranks(2, [](const RankPlace& place) {
    use_double();
    const auto backend = make_backend(place);
    test::use_device(Backend::kNccl, place.rank);
    Device none(filled(0, 0));
    for (const OpKind kind :
         {OpKind::kAllReduce, OpKind::kBroadcast, OpKind::kReduce, OpKind::kScatter,
          OpKind::kGather, OpKind::kAllGather, OpKind::kReduceScatter, OpKind::kAllToAll}) {
      run(*backend, operation(kind, none, none)).value();
    }
    expect_works(*backend, place.size, "after them");
  });
}

TEST_CASE("a group of sends and receives in a circle does not wait for itself") {
  run_ranks(3, [](const RankPlace& place) {
    use_double();
    const auto backend = make_backend(place);
    test::use_device(Backend::kNccl, place.rank);
    Device mine(filled(2, place.rank));
    Device theirs(filled(2, -1));
    const int next = (place.rank + 1) % 3;
    const int before = (place.rank + 2) % 3;
    const Operation both[] = {operation(OpKind::kSend, mine, {}, next),
                              operation(OpKind::kRecv, {}, theirs, before)};
    run(*backend, both).value();
    expect_values(theirs, filled(2, before), "received");
  });
}

TEST_CASE("an operation takes its turn on its stream, and a barrier comes after all") {
  run_ranks(2, [](const RankPlace& place) {
    use_double();
    const auto backend = make_backend(place);
    test::use_device(Backend::kNccl, place.rank);
    const Stream stream = test::make_stream(Backend::kNccl);
    test::TestBuffer values(Backend::kNccl, 1000, DataType::kInt32);
    values.fill<int>(1);
    // Each doubles what the one before left.
    std::vector<std::shared_ptr<Pending>> begun;
    for (int i = 0; i < 5; ++i) {
      const Operation sum = operation(OpKind::kAllReduce, {}, values.buffer(stream));
      begun.push_back(backend->start({&sum, 1}, in(seconds(20))).value());
    }
    run(*backend, operation(OpKind::kBarrier, {}, {})).value();
    for (const auto& pending : begun) {
      expect(pending->poll().has_value(), "the barrier has waited for it");
    }
    expect(values.values<int>() == filled(1000, 32), "doubled five times");
    test::free_stream(Backend::kNccl, stream);
  });
}

TEST_CASE("a group that fails in the middle is closed, and the error names the call") {
  run_ranks(1, [](const RankPlace& place) {
    use_double(Nccl::kToday, "ncclBroadcast:fail=4@1");
    const auto backend = make_backend(place);
    Device values(filled(2, 1));
    const Operation group[] = {operation(OpKind::kAllReduce, {}, values),
                               operation(OpKind::kBroadcast, values, values),
                               operation(OpKind::kAllReduce, {}, values)};
    const std::string message =
        expect_error(run(*backend, group), ErrorCode::kInvalidArgument, "the group");
    expect_says(message, "ncclBroadcast: ");
    // An open group would swallow this one.
    expect_works(*backend, 1, "the next one");
  });
}

TEST_CASE("idle events are kept up to a limit") {
  run_ranks(1, [](const RankPlace&) {
    use_double();
    EventPool pool(*cuda_table().value(), 0);
    std::vector<cudaEvent_t> events;
    for (size_t i = 0; i < EventPool::kMaxIdle + 10; ++i)
      events.push_back(pool.take().value());
    for (cudaEvent_t event : events)
      pool.give(event);
    expect(pool.idle() == EventPool::kMaxIdle, std::to_string(pool.idle()) + " are idle");
    const cudaEvent_t again = pool.take().value();
    expect(std::ranges::find(events, again) != events.end(), "one of them is used again");
    pool.give(again);
  });
}

TEST_CASE("a kernel that breaks the device is told as what it is") {
  run_ranks(1, [](const RankPlace& place) {
    use_double(Nccl::kToday, "task:fail=700@4");
    const auto backend = make_backend(place);
    Device values(filled(1, 0));
    Result<void> done;
    for (int i = 0; i < 5 && done; ++i) {
      done = run(*backend, operation(OpKind::kAllReduce, {}, values));
    }
    expect_says(expect_error(done, ErrorCode::kCuda, "the broken one"), "compute-sanitizer");
    expect(done.error().cuda_error == 700, "the number of the error");
  });
}

}  // namespace muster::comm::detail
