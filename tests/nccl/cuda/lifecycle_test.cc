// SPDX-License-Identifier: Apache-2.0
// Making, aborting, closing and dropping, with what can go wrong behind.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "nccl/cuda/on_double.h"
#include "nccl/cuda/tables.h"

namespace muster::comm::detail {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::shared_ptr<Pending> begin(CommBackend& backend, Device& values) {
  const Operation sum = operation(OpKind::kAllReduce, {}, values);
  return backend.start({&sum, 1}, in(seconds(20))).value();
}

// The process is as good as before: another communicator can be made and used.
void expect_alive(const RankPlace& place) {
  BackendPlan alone = place.plan(seconds(20), "alone" + std::to_string(place.rank));
  alone.rank = 0;
  alone.size = 1;
  alone.world_ranks = {place.rank};
  alone.options.device = place.rank;
  const auto backend = make_nccl_backend(alone).value();
  expect_works(*backend, 1, "after it");
  backend->close(in(seconds(5))).value();
}

}  // namespace

TEST_CASE("a rank that never comes ends the making by its deadline") {
  run_ranks(2, [](const RankPlace& place) {
    use_double();
    if (place.rank == 1) return;
    const auto made = within(seconds(3), "making",
                             [&] { return make_nccl_backend(plan_of(place, milliseconds(500))); });
    expect_error(made, ErrorCode::kTimeout, "making");
    expect_alive(place);
  });
}

TEST_CASE("a call of NCCL that never comes back does not hold the making") {
  run_ranks(1, [](const RankPlace& place) {
    use_double(Nccl::kToday, "ncclCommInitRankConfig:block@1");
    const auto made = within(seconds(3), "making",
                             [&] { return make_nccl_backend(plan_of(place, milliseconds(300))); });
    expect_says(expect_error(made, ErrorCode::kTimeout, "making"), "ncclCommInitRankConfig");
    expect_alive(place);
  });
}

TEST_CASE("an init that goes on in the background is waited for") {
  run_ranks(2, [](const RankPlace& place) {
    use_double(Nccl::kToday, "job:delay=200@1");
    const auto backend = make_backend(place);
    test::use_device(Backend::kNccl, place.rank);
    expect(backend->timings().library >= milliseconds(200), "the time it took is told");
    expect_works(*backend, 2, "then");
  });
}

TEST_CASE("an init that fails behind is told by its cause") {
  run_ranks(2, [](const RankPlace& place) {
    use_double();
    setenv("DOUBLE_DEVICES", "1", 1);  // both get the only one
    expect_says(expect_error(make_nccl_backend(plan_of(place)), ErrorCode::kMismatch, "making"),
                "the same GPU");
    if (place.rank == 0) expect_alive(place);
  });
}

TEST_CASE("an abort ends what hangs, and the process lives") {
  run_ranks(2, [](const RankPlace& place) {
    use_double();
    const auto backend = make_backend(place);
    test::use_device(Backend::kNccl, place.rank);
    expect_works(*backend, 2, "before");
    place.meet("used");
    Device values(filled(1, 1));
    if (place.rank == 1) {
      // Never calls it; stays until the other has aborted.
      place.meet("aborted");
      return;
    }
    const auto pending = begin(*backend, values);
    expect(!pending->wait(in(milliseconds(50))).has_value(), "it hangs");
    std::thread other([&] {
      backend->stop();
      within(seconds(5), "abort", [&] { return backend->abort(in(seconds(4))); }).value();
    });
    const auto ended = pending->wait(in(seconds(10)));
    expect(ended.has_value(), "it ends");
    expect_error(*ended, ErrorCode::kAborted, "the operation");
    other.join();
    expect_error(run(*backend, operation(OpKind::kBarrier, {}, {})), ErrorCode::kAborted, "more");
    expect_error(backend->status(), ErrorCode::kAborted, "its state");
    expect_values(values, {1}, "the stream goes on");  // copies wait for the device
    expect_alive(place);
    place.meet("aborted");
  });
}

TEST_CASE("an abort that NCCL never ends returns by its deadline, and the process ends") {
  run_ranks(1, [](const RankPlace& place) {
    use_double(Nccl::kToday, "ncclCommAbort:block@1");
    const auto backend = make_backend(place);
    expect_works(*backend, 1, "before");
    const auto aborted =
        within(seconds(2), "abort", [&] { return backend->abort(in(milliseconds(300))); });
    expect_says(expect_error(aborted, ErrorCode::kTimeout, "abort"), "ncclCommAbort");
    expect_alive(place);
  });
}

TEST_CASE("a launch that hangs in the background ends by its deadline or by an abort") {
  run_ranks(1, [](const RankPlace& place) {
    use_double(Nccl::kToday, "job:stay@3");
    const auto backend = make_backend(place);
    Device values(filled(1, 1));
    const Operation sum = operation(OpKind::kAllReduce, {}, values);
    const auto begun = within(seconds(2), "starting", [&] {
      return backend->start({&sum, 1}, in(milliseconds(200)));
    });
    expect_error(begun, ErrorCode::kTimeout, "starting");
    within(seconds(5), "abort", [&] { return backend->abort(in(seconds(4))); }).value();
    expect_alive(place);
  });
}

TEST_CASE("a stop from another thread ends a launch that hangs") {
  run_ranks(1, [](const RankPlace& place) {
    use_double(Nccl::kToday, "job:stay@3");
    const auto backend = make_backend(place);
    std::thread other([&] {
      std::this_thread::sleep_for(milliseconds(100));  // whether it has begun is not told
      backend->stop();
    });
    const auto begun = within(seconds(5), "starting", [&] {
      return run(*backend, operation(OpKind::kBarrier, {}, {}), seconds(20));
    });
    expect_error(begun, ErrorCode::kAborted, "starting");
    other.join();
    expect_alive(place);
  });
}

TEST_CASE("an error behind is found by asking") {
  run_ranks(1, [](const RankPlace& place) {
    use_double(Nccl::kToday, "kernel:fail=6@3");  // ncclRemoteError
    const auto backend = make_backend(place);
    expect_works(*backend, 1, "before");
    expect(backend->status().has_value(), "all is well");
    const Result<void> done = within(seconds(5), "the operation", [&] {
      return run(*backend, operation(OpKind::kBarrier, {}, {}));
    });
    expect_says(expect_error(done, ErrorCode::kPeerLost, "the operation"), "another rank died");
    expect(done.error().nccl_result == ncclRemoteError, "NCCL's number");
    expect_error(backend->status(), ErrorCode::kPeerLost, "its state");
    backend->abort(in(seconds(4))).value();
    expect_alive(place);
  });
}

TEST_CASE("a peer that dies is found by those who wait for it") {
  run_ranks(2,
            [](const RankPlace& place) {
              use_double();
              const auto backend = make_backend(place);
              test::use_device(Backend::kNccl, place.rank);
              expect_works(*backend, 2, "before");
              place.meet("used");
              if (place.rank == 1) raise(SIGKILL);
              const Result<void> done = within(seconds(10), "the operation", [&] {
                return run(*backend, operation(OpKind::kBarrier, {}, {}));
              });
              expect_error(done, ErrorCode::kPeerLost, "the operation");
              within(seconds(5), "abort", [&] { return backend->abort(in(seconds(4))); }).value();
              expect_alive(place);
            },
            {1});
}

TEST_CASE("a close waits for what is under way and frees everything") {
  run_ranks(2, [](const RankPlace& place) {
    use_double(Nccl::kToday, "kernel:delay=300@3");
    const auto backend = make_backend(place);
    test::use_device(Backend::kNccl, place.rank);
    expect_works(*backend, 2, "before");
    Device values(filled(1, 3));
    const auto pending = begin(*backend, values);
    backend->close(in(seconds(10))).value();
    const auto ended = pending->poll();
    expect(ended.has_value() && ended->has_value(), "it has ended well");
    expect_values(values, {6}, "the sum");
    expect_error(backend->status(), ErrorCode::kAborted, "its state");
  });
}

TEST_CASE("a close that waits in vain ends by its deadline and frees it all the same") {
  run_ranks(2, [](const RankPlace& place) {
    use_double();
    const auto backend = make_backend(place);
    test::use_device(Backend::kNccl, place.rank);
    if (place.rank == 1) return place.meet("closed");
    Device values(filled(1, 1));
    const Operation send = operation(OpKind::kSend, values, {}, 1);
    // Connecting to the peer is part of the launch, and hangs in it.
    expect_error(backend->start({&send, 1}, in(milliseconds(200))), ErrorCode::kTimeout, "send");
    const auto closed =
        within(seconds(5), "close", [&] { return backend->close(in(milliseconds(300))); });
    expect(!closed, "it was not closed well");
    expect_alive(place);
    place.meet("closed");
  });
}

TEST_CASE("a finalize that hangs is ended by the deadline of the close") {
  run_ranks(1, [](const RankPlace& place) {
    use_double(Nccl::kToday, "ncclCommFinalize:block@1");
    const auto backend = make_backend(place);
    const auto closed =
        within(seconds(5), "close", [&] { return backend->close(in(milliseconds(300))); });
    expect_says(expect_error(closed, ErrorCode::kTimeout, "close"), "ncclCommFinalize");
    expect_alive(place);
  });
}

TEST_CASE("a destroy that hangs is ended by the deadline of the close") {
  run_ranks(1, [](const RankPlace& place) {
    use_double(Nccl::kToday, "ncclCommDestroy:block@1");
    const auto backend = make_backend(place);
    const auto closed =
        within(seconds(5), "close", [&] { return backend->close(in(milliseconds(300))); });
    expect_says(expect_error(closed, ErrorCode::kTimeout, "close"), "ncclCommDestroy");
  });
}

TEST_CASE("a backend that is dropped frees itself, with work in flight too") {
  run_ranks(2, [](const RankPlace& place) {
    use_double();
    auto backend = make_backend(place);
    test::use_device(Backend::kNccl, place.rank);
    expect_works(*backend, 2, "before");
    place.meet("used");
    if (place.rank == 0) {
      Device values(filled(1, 1));
      const auto pending = begin(*backend, values);
      within(seconds(5), "dropping", [&] {
        backend.reset();
        return 0;
      });
      const auto ended = pending->poll();
      expect(ended.has_value(), "it has ended");
      expect_error(*ended, ErrorCode::kAborted, "the operation");
    }
    place.meet("dropped");
  });
}

TEST_CASE("a forked child leaves the driver alone") {
  run_ranks(1, [](const RankPlace& place) {
    use_double();
    auto backend = make_backend(place);
    Device values(filled(1, 1));
    auto pending = begin(*backend, values);
    const pid_t child = fork();
    if (child == 0) {
      // A call into the driver's state of another process could hang or crash.
      bool good =
          !driver_usable() && !backend->status() && !backend->abort(in(seconds(1))) == false;
      good = good && !backend->start({}, in(seconds(1)));
      pending.reset();
      backend.reset();
      _exit(good ? 0 : 1);
    }
    int status = 0;
    expect(waitpid(child, &status, 0) == child && status == 0,
           "the child: status " + std::to_string(status));
    expect_works(*backend, 1, "the parent");
  });
}

TEST_CASE("a backend that outlives main leaves the driver alone") {
  run_ranks(1, [](const RankPlace& place) {
    use_double(Nccl::kToday, "ncclCommAbort:block,ncclCommDestroy:block");
    const pid_t child = fork();
    if (child == 0) {
      static std::unique_ptr<CommBackend> forgotten;
      forgotten = make_backend(place);
      alarm(20);
      std::exit(0);  // its static objects are destroyed: a call would hang
    }
    int status = 0;
    expect(waitpid(child, &status, 0) == child && status == 0,
           "the child: status " + std::to_string(status));
  });
}

TEST_CASE("what keeps NCCL from working is told in one sentence") {
  const auto refused = [](const char* variable, const char* value, ErrorCode code,
                          const std::string& says) {
    run_ranks(1, [&](const RankPlace& place) {
      use_double();
      setenv(variable, value, 1);
      const auto made =
          within(seconds(5), "making", [&] { return make_nccl_backend(plan_of(place)); });
      const std::string message = expect_error(made, code, variable);
      expect_says(message, says);
      expect(message.find('\n') == std::string::npos, "one line: " + message);
    });
  };
  refused("DOUBLE_DRIVER_VERSION", "0", ErrorCode::kUnavailable, "has no NVIDIA driver");
  refused("DOUBLE_DRIVER_VERSION", "12020", ErrorCode::kUnavailable,
          "driver is too old: it knows CUDA 12.2");
  refused("DOUBLE_DEVICES", "0", ErrorCode::kUnavailable, "shows no GPU");
  refused("DOUBLE_NCCL_VERSION", "21105", ErrorCode::kUnavailable, "at least 2.14.0 is needed");
  refused("MUSTER_NCCL_LIBRARY", "/nowhere/libnccl.so", ErrorCode::kUnavailable,
          "/nowhere/libnccl.so");
  refused("MUSTER_CUDART_LIBRARY", "/nowhere/libcudart.so", ErrorCode::kUnavailable, "cuda: ");
  refused("NCCL_SOCKET_IFNAME", "nosuch", ErrorCode::kNccl, "NCCL_SOCKET_IFNAME");
}

TEST_CASE("NCCL's warnings stand in a file of the rank, and in the error") {
  std::string folder = std::filesystem::temp_directory_path() / "muster-nccl-XXXXXX";
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  run_ranks(2, [&](const RankPlace& place) {
    use_double();
    setenv("TORCHELASTIC_ERROR_FILE", (folder + "/error.json").c_str(), 1);
    setenv("DOUBLE_DEVICES", "1", 1);
    const std::string message =
        expect_error(make_nccl_backend(plan_of(place)), ErrorCode::kMismatch, "making");
    const std::string file = folder + "/nccl." + std::to_string(getpid()) + ".log";
    expect_says(message, "Duplicate GPU detected");
    expect_says(message, file);
    expect(std::filesystem::file_size(file) > 0, "the file");
  });
  std::filesystem::remove_all(folder);
}

TEST_CASE("what NCCL said of an earlier error does not explain a later one") {
  std::string folder = std::filesystem::temp_directory_path() / "muster-nccl-XXXXXX";
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  for (const bool logged : {true, false}) {
    run_ranks(1, [&](const RankPlace& place) {
      use_double(Nccl::kToday, "kernel:fail=6@3,kernel:fail=3@5");  // of a peer, and internal
      if (logged) setenv("TORCHELASTIC_ERROR_FILE", (folder + "/error.json").c_str(), 1);
      for (int i = 0; i < 2; ++i) {  // the same again is not an earlier one's
        setenv("NCCL_SOCKET_IFNAME", "nosuch", 1);
        expect_says(expect_error(make_nccl_backend(plan_of(place, seconds(20), "a")),
                                 ErrorCode::kNccl, "making"),
                    "usually: no network interface fits");
        unsetenv("NCCL_SOCKET_IFNAME");
        // Nor after one that went well, the first time.
        const auto backend = make_nccl_backend(plan_of(place, seconds(20), "b")).value();
        if (i == 0) expect_works(*backend, 1, "between");
        const Operation barrier = operation(OpKind::kBarrier, {}, {});
        const Result<void> lost = run(*backend, barrier);
        const std::string message =
            expect_error(lost, i == 0 ? ErrorCode::kPeerLost : ErrorCode::kNccl, "what breaks");
        // Without a log and a cause of its own it could be the same again.
        if (logged || i == 0) {
          expect(message.find("interface") == std::string::npos, "not its: " + message);
        }
        if (i == 0) expect_says(message, "another rank died");
        expect(backend->status().error().message == message, "told again: " + message);
        backend->abort(in(seconds(4))).value();
      }
    });
  }
  std::filesystem::remove_all(folder);
}

TEST_CASE("a device's identity is its own") {
  run_ranks(1, [](const RankPlace&) {
    use_double();
    const std::string first = nccl_device_identity(0);
    expect(first.find(':') != std::string::npos, "bus id: " + first);
    expect_says(first, " GPU-");
    expect(first != nccl_device_identity(1), "another's is another");
    expect(nccl_device_identity(99).empty(), "none has none");
  });
}

}  // namespace muster::comm::detail
