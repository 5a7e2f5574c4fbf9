// SPDX-License-Identifier: Apache-2.0
// Communicators out of others: NCCL's own split, shrink, revoke and grow, where it has them.
#include <doctest/doctest.h>

#include <csignal>
#include <cstdlib>
#include <thread>

#include "nccl/cuda/on_double.h"
#include "nccl/cuda/tables.h"

namespace muster::comm::detail {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A new one's plan, as the parent's caller knows it.
BackendPlan child_plan(const RankPlace& place, int rank, int size,
                       milliseconds time = seconds(20)) {
  BackendPlan plan = place.plan(time, "child");
  plan.rank = rank;
  plan.size = size;
  plan.world_ranks.resize(static_cast<size_t>(size));
  plan.local_rank = place.rank;
  return plan;
}

std::unique_ptr<CommBackend> value(CommBackend::Made made, const std::string& what) {
  expect(made.has_value(), what + ": NCCL has it");
  return std::move(*made).value();
}

}  // namespace

TEST_CASE("a split makes a communicator for each colour") {
  for (const Nccl version : {Nccl::kToday, Nccl::kOld}) {
    run_ranks(3, [version](const RankPlace& place) {
      use_double(version);
      const auto backend = make_backend(place);
      test::use_device(Backend::kNccl, place.rank);
      // 0 and 2, in reverse order.
      const bool in_group = place.rank != 1;
      const auto group = value(backend->split(in_group ? 7 : kNoColor, -place.rank,
                                              child_plan(place, place.rank == 2 ? 0 : 1, 2)),
                               "split");
      expect((group != nullptr) == in_group, "whether it is in a group");
      if (in_group) {
        Device values(filled(1, place.rank));
        run(*group, operation(OpKind::kBroadcast, values, values, 0)).value();
        expect_values(values, {2}, "rank 0 of the group is 2");
        group->close(in(seconds(10))).value();
      }
      expect_works(*backend, 3, "the parent");
    });
  }
}

TEST_CASE("a split that a member never calls ends by its deadline, and all can be freed") {
  run_ranks(2, [](const RankPlace& place) {
    use_double();
    const auto backend = make_backend(place);
    test::use_device(Backend::kNccl, place.rank);
    if (place.rank == 0) {
      const auto made = within(seconds(3), "split", [&] {
        return backend->split(0, 0, child_plan(place, 0, 2, milliseconds(300)));
      });
      expect(made.has_value(), "NCCL has it");
      expect_error(*made, ErrorCode::kTimeout, "split");
      within(seconds(5), "abort", [&] { return backend->abort(in(seconds(4))); }).value();
    }
    place.meet("ended");
  });
}

TEST_CASE("a split that NCCL never gives back does not hold what is called afterwards") {
  run_ranks(1, [](const RankPlace& place) {
    use_double(Nccl::kToday, "ncclCommSplit:block@1");
    const auto backend = make_backend(place);
    const auto made = backend->split(0, 0, child_plan(place, 0, 1, milliseconds(200)));
    expect_error(made.value(), ErrorCode::kTimeout, "split");
    const auto more = within(seconds(2), "an operation", [&] {
      return run(*backend, operation(OpKind::kBarrier, {}, {}), milliseconds(200));
    });
    expect_says(expect_error(more, ErrorCode::kTimeout, "an operation"), "has not come back");
    const auto again = within(seconds(2), "another split", [&] {
      return backend->split(0, 0, child_plan(place, 0, 1, milliseconds(200)));
    });
    expect_error(again.value(), ErrorCode::kTimeout, "another split");
    const auto closed =
        within(seconds(5), "close", [&] { return backend->close(in(milliseconds(300))); });
    expect_error(closed, ErrorCode::kTimeout, "close");
  });
}

TEST_CASE("what NCCL makes too late is freed with its parent") {
  for (const bool closed : {true, false}) {
    run_ranks(1, [closed](const RankPlace& place) {
      use_double(Nccl::kToday, "job:delay=500@3");
      const auto backend = make_backend(place);
      const auto made = backend->split(0, 0, child_plan(place, 0, 1, milliseconds(100)));
      expect_error(made.value(), ErrorCode::kTimeout, "split");
      expect(comms_left() == 2, "both are there");
      // The parent takes calls again when the split has ended.
      const Deadline end = in(seconds(20));
      while (!run(*backend, operation(OpKind::kBarrier, {}, {})) &&
             std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(milliseconds(10));
      }
      const auto freed = closed ? backend->close(in(seconds(5))) : backend->abort(in(seconds(5)));
      expect(freed.has_value(), "freed");
      expect(comms_left() == 0, "none is left");
    });
  }
}

TEST_CASE("a stop ends a split that hangs") {
  run_ranks(2, [](const RankPlace& place) {
    use_double();
    const auto backend = make_backend(place);
    if (place.rank == 0) {
      std::thread other([&] {
        std::this_thread::sleep_for(milliseconds(100));  // whether it has begun is not told
        backend->stop();
      });
      const auto made = within(seconds(5), "split",
                               [&] { return backend->split(0, 0, child_plan(place, 0, 2)); });
      other.join();
      expect_error(made.value(), ErrorCode::kAborted, "split");
      within(seconds(5), "abort", [&] { return backend->abort(in(seconds(4))); }).value();
    }
    place.meet("ended");
  });
}

TEST_CASE("an abort from another thread ends a split that waits for what is under way") {
  run_ranks(2, [](const RankPlace& place) {
    use_double();
    const auto backend = make_backend(place);
    test::use_device(Backend::kNccl, place.rank);
    if (place.rank == 0) {
      Device values(filled(1, 5));
      const Operation sum = operation(OpKind::kAllReduce, {}, values);
      // Nobody but the backend keeps what follows it.
      expect(backend->start({&sum, 1}, in(seconds(20))).has_value(), "it has begun");
      std::thread other([&] {
        std::this_thread::sleep_for(milliseconds(100));  // whether it waits is not told
        backend->abort(in(seconds(4))).value();
      });
      const auto made = within(seconds(5), "split",
                               [&] { return backend->split(0, 0, child_plan(place, 0, 2)); });
      other.join();
      expect_error(made.value(), ErrorCode::kAborted, "split");
    }
    place.meet("ended");
  });
}

TEST_CASE("a shrink leaves out ranks that do not call it") {
  run_ranks(3, [](const RankPlace& place) {
    use_double();
    const auto backend = make_backend(place);
    test::use_device(Backend::kNccl, place.rank);
    expect_works(*backend, 3, "before");
    const int excluded[] = {1};
    if (place.rank != 1) {
      const auto rest =
          value(backend->shrink(excluded, child_plan(place, place.rank / 2, 2)), "shrink");
      expect_works(*rest, 2, "without it");
      rest->close(in(seconds(10))).value();
    }
    expect_works(*backend, 3, "the parent");
  });
}

TEST_CASE("a shrink ends by force what hangs in the old communicator") {
  run_ranks(3, [](const RankPlace& place) {
    use_double();
    const auto backend = make_backend(place);
    test::use_device(Backend::kNccl, place.rank);
    expect_works(*backend, 3, "before");
    place.meet("used");
    if (place.rank == 2) return place.meet("shrunk");
    Device values(filled(1, 5));
    const Operation sum = operation(OpKind::kAllReduce, {}, values);
    const auto pending = backend->start({&sum, 1}, in(seconds(20))).value();
    const int excluded[] = {2};
    const auto rest =
        value(backend->shrink(excluded, child_plan(place, place.rank, 2, seconds(2))), "shrink");
    (void)values.values();  // waits for the device
    expect_works(*rest, 2, "the rest");
    rest->close(in(seconds(10))).value();
    place.meet("shrunk");
  });
}

TEST_CASE("a communicator that does not get ready leaves time to make a new one") {
  run_ranks(2, [](const RankPlace& place) {
    use_double(Nccl::kToday, "job:stay@3");
    const auto backend = make_backend(place);
    test::use_device(Backend::kNccl, place.rank);
    if (place.rank == 1) return place.meet("made anew");
    expect_error(run(*backend, operation(OpKind::kBarrier, {}, {}), milliseconds(100)),
                 ErrorCode::kTimeout, "a launch that stays");
    const int excluded[] = {1};
    const BackendPlan plan = child_plan(place, 0, 1, seconds(4));
    const auto made = within(seconds(3), "shrink", [&] { return backend->shrink(excluded, plan); });
    expect(!made.has_value(), "told to make a new one");
    const auto rest = make_nccl_backend(plan).value();
    expect_works(*rest, 1, "the rest");
    rest->close(in(seconds(10))).value();
    place.meet("made anew");
  });
}

TEST_CASE("a revoke by an NCCL without one frees the device, and the rest make a new one") {
  run_ranks(3, [](const RankPlace& place) {
    use_double();
    setenv("DOUBLE_NCCL_VERSION", "22703", 1);
    const auto backend = make_backend(place);
    test::use_device(Backend::kNccl, place.rank);
    place.meet("used");
    if (place.rank == 2) return place.meet("shrunk");
    Device values(filled(1, 5));
    const Operation sum = operation(OpKind::kAllReduce, {}, values);
    const auto pending = backend->start({&sum, 1}, in(seconds(20))).value();
    backend->revoke().value();
    (void)values.values();  // waits for the device
    const int excluded[] = {2};
    const BackendPlan plan = child_plan(place, place.rank, 2);
    expect(!backend->shrink(excluded, plan).has_value(), "it is gone");
    const auto rest = make_nccl_backend(plan).value();
    expect_works(*rest, 2, "the rest");
    rest->close(in(seconds(10))).value();
    place.meet("shrunk");
  });
}

TEST_CASE("without a rank that died in the middle all others make a new one, whatever they saw") {
  run_ranks(3,
            [](const RankPlace& place) {
              use_double();
              const auto backend = make_backend(place);
              test::use_device(Backend::kNccl, place.rank);
              expect_works(*backend, 3, "before");
              place.meet("used");
              if (place.rank == 1) raise(SIGKILL);
              expect_error(run(*backend, operation(OpKind::kBarrier, {}, {})), ErrorCode::kPeerLost,
                           "with the dead one");
              // One is gone altogether for its rank.
              if (place.rank == 2) backend->abort(in(seconds(4))).value();
              const int dead[] = {1};
              const BackendPlan plan = child_plan(place, place.rank / 2, 2);
              expect(!backend->shrink(dead, plan).has_value(), "all are told to make a new one");
              const auto rest = make_nccl_backend(plan).value();
              backend->abort(in(seconds(4))).value();
              expect_works(*rest, 2, "without it");
              rest->close(in(seconds(10))).value();
            },
            {1});
}

TEST_CASE("a revoked communicator lets its streams go on and can be shrunk") {
  run_ranks(3, [](const RankPlace& place) {
    use_double();
    const auto backend = make_backend(place);
    test::use_device(Backend::kNccl, place.rank);
    expect_works(*backend, 3, "before");
    place.meet("used");
    if (place.rank == 2) return place.meet("shrunk");
    Device values(filled(1, 5));
    const Operation sum = operation(OpKind::kAllReduce, {}, values);
    const auto pending = backend->start({&sum, 1}, in(seconds(20))).value();
    within(seconds(2), "revoke", [&] { return backend->revoke(); }).value();
    expect_error(pending->poll().value(), ErrorCode::kAborted, "what was under way");
    (void)values.values();  // waits for the device
    const int excluded[] = {2};
    const auto rest = value(backend->shrink(excluded, child_plan(place, place.rank, 2)), "shrink");
    expect_works(*rest, 2, "the rest");
    rest->close(in(seconds(10))).value();
    place.meet("shrunk");
  });
}

TEST_CASE("a grow takes in new ranks with NCCL's own function") {
  run_ranks(3, [](const RankPlace& place) {
    use_double(Nccl::kNew);
    test::use_device(Backend::kNccl, place.rank);
    BackendPlan grown = child_plan(place, place.rank, 3);
    std::unique_ptr<CommBackend> larger;
    if (place.rank == 2) {
      grown.grown_from = 2;
      larger = make_nccl_backend(grown).value();
    } else {
      BackendPlan first = plan_of(place);
      first.size = 2;
      const auto backend = make_nccl_backend(first).value();
      expect_works(*backend, 2, "before");
      larger = value(backend->grow(1, grown), "grow");
      backend->close(in(seconds(10))).value();
    }
    expect_works(*larger, 3, "grown");
    larger->close(in(seconds(10))).value();
  });
}

TEST_CASE("a grow by an NCCL without it makes a new communicator on all ranks") {
  run_ranks(2, [](const RankPlace& place) {
    use_double();
    BackendPlan grown = child_plan(place, place.rank, 2);
    if (place.rank == 1) {
      grown.grown_from = 1;
      const auto larger = make_nccl_backend(grown).value();
      test::use_device(Backend::kNccl, place.rank);
      return expect_works(*larger, 2, "grown");
    }
    BackendPlan first = plan_of(place);
    first.size = 1;
    const auto backend = make_nccl_backend(first).value();
    expect(!backend->grow(1, grown).has_value(), "2.28 has none");
    const auto larger = make_nccl_backend(grown).value();
    expect_works(*larger, 2, "grown");
  });
}

TEST_CASE("what an older NCCL lacks is done without, or told") {
  run_ranks(1, [](const RankPlace& place) {
    use_double(Nccl::kOld);
    const auto backend = make_backend(place);
    const int excluded[] = {0};
    expect(!backend->shrink(excluded, child_plan(place, 0, 1)).has_value(), "no shrink");
    expect(!backend->grow(1, child_plan(place, 0, 2)).has_value(), "no grow");
    Device values(filled(4, 0));
    expect_says(expect_error(backend->register_buffer(values), ErrorCode::kUnavailable, "register"),
                "need NCCL 2.19");
    expect(backend->revoke().has_value(), "a revoke stops at least");
    expect_error(backend->status(), ErrorCode::kAborted, "its state");
  });
}

TEST_CASE("a version that reports itself older is used as such") {
  run_ranks(1, [](const RankPlace& place) {
    use_double();
    setenv("DOUBLE_NCCL_VERSION", "21705", 1);
    const auto backend = make_backend(place);
    expect(!backend->split(0, 0, child_plan(place, 0, 1)).has_value(), "2.17 has no split");
    expect_works(*backend, 1, "the rest");
  });
}

TEST_CASE("a registered buffer is used, and forgotten before or after its communicator") {
  run_ranks(1, [](const RankPlace& place) {
    use_double();
    const auto backend = make_backend(place);
    Device values(filled(4, 2));
    std::shared_ptr<void> first = backend->register_buffer(values).value();
    const std::shared_ptr<void> second = backend->register_buffer(values).value();
    run(*backend, operation(OpKind::kAllReduce, {}, values)).value();
    first.reset();
    backend->close(in(seconds(5))).value();
  });
}

TEST_CASE("an init with several roots works, and each rank says how long it took") {
  run_ranks(4, [](const RankPlace& place) {
    use_double();
    BackendPlan plan = plan_of(place);
    plan.options.init_roots = 3;
    const auto backend = make_nccl_backend(plan).value();
    test::use_device(Backend::kNccl, place.rank);
    expect(place.store()->check(std::vector<std::string>{"nccl/id/2"}).value(), "three ids");
    expect_works(*backend, 4, "with them");
  });
}

}  // namespace muster::comm::detail
