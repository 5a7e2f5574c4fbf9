// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>

#include "nccl/gloo/addresses.h"
#include "nccl/gloo/ranks.h"

namespace muster::comm::detail {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// How much longer than its deadline a call may take: two busy cores, sanitizers.
constexpr milliseconds kGrace{1000};

double elapsed(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Operation all_reduce(std::vector<float>& numbers) {
  Operation operation;
  operation.kind = OpKind::kAllReduce;
  operation.out = numbers;
  return operation;
}

Operation barrier() {
  return Operation{};
}

Result<void> run(CommBackend& backend, const Operation& operation, milliseconds timeout) {
  return backend.run({&operation, 1}, in(timeout));
}

// A call that has to fail with this code, by its deadline.
Error fails(CommBackend& backend, const Operation& operation, milliseconds timeout, ErrorCode code,
            const std::string& what) {
  const auto start = std::chrono::steady_clock::now();
  const Result<void> result = run(backend, operation, timeout);
  expect(!result, what + ": no error");
  expect(result.error().code == code,
         what + ": " + to_string(result.error().code) + ": " + result.error().message);
  expect(std::chrono::steady_clock::now() < start + timeout + kGrace,
         what + ": took " + std::to_string(elapsed(start)) + " s");
  return result.error();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<float> floats(size_t count) {
  return std::vector<float>(count, 1);
}

}  // namespace

TEST_CASE("who never comes is named when communicators are made") {
  run_ranks(3, [](const RankPlace& place) {
    if (place.rank == 1) return;
    const auto start = std::chrono::steady_clock::now();
    const auto made = make_gloo_backend(place.plan(milliseconds(700)));
    expect(!made && made.error().code == ErrorCode::kTimeout, "made without rank 1");
    expect(contains(made.error().message, "rank 11"), made.error().message);
    expect(made.error().ranks == std::vector{1}, "names others too");
    expect(elapsed(start) < 2.7, "took " + std::to_string(elapsed(start)));
  });
}

TEST_CASE("who leaves an address and does not connect is named") {
  run_ranks(3, [](const RankPlace& place) {
    if (place.rank == 2) {
      // The greater address connects to the others.
      ListenAddresses addresses{.ports = {1, 2, 0}};
      addresses.host.ss_family = AF_INET;
      reinterpret_cast<sockaddr_in&>(addresses.host).sin_addr.s_addr = htonl(0x7f000002);
      expect(place.store()->set("gloo/2", addresses.encode()).has_value(), "the store");
    } else {
      const auto start = std::chrono::steady_clock::now();
      const auto made = make_gloo_backend(place.plan(milliseconds(800)));
      expect(!made && made.error().code == ErrorCode::kTimeout, "made without rank 2");
      expect(contains(made.error().message, "rank 12"), made.error().message);
      expect(elapsed(start) < 1.8, "took " + std::to_string(elapsed(start)));
    }
    place.meet("done");
  });
}

TEST_CASE("each collective ends at its deadline when a rank does not take part") {
  for (const OpKind kind :
       {OpKind::kBroadcast, OpKind::kReduce, OpKind::kAllReduce, OpKind::kScatter, OpKind::kGather,
        OpKind::kAllGather, OpKind::kReduceScatter, OpKind::kAllToAll, OpKind::kBarrier,
        OpKind::kRecv, OpKind::kSend}) {
    run_ranks(2, [kind](const RankPlace& place) {
      const auto backend = place.backend();
      std::vector<float> from(200'000), to(200'000);
      Operation operation;
      operation.kind = kind;
      operation.root_or_peer = kind == OpKind::kScatter || kind == OpKind::kBroadcast ? 1 : 0;
      if (place.rank == 0) {
        const bool small = kind == OpKind::kScatter || kind == OpKind::kReduceScatter;
        const bool few = kind == OpKind::kGather || kind == OpKind::kAllGather;
        operation.in = Buffer(from).part(0, few ? 100'000 : 200'000);
        operation.out = Buffer(to).part(0, small ? 100'000 : 200'000);
        if (operation.point_to_point()) operation.root_or_peer = 1;
        const Error error =
            fails(*backend, operation, milliseconds(300), ErrorCode::kTimeout, to_string(kind));
        expect(contains(error.message, "rank 11"), error.message);
        fails(*backend, barrier(), seconds(5), ErrorCode::kTimeout, "afterwards");
      }
      place.meet("done");
      backend->close(in(seconds(1))).value();
    });
  }
}

TEST_CASE("calls that differ time out, and the process lives") {
  run_ranks(2, [](const RankPlace& place) {
    for (const int round : {0, 1, 2, 3, 4}) {
      const auto backend = place.backend(seconds(20), "round" + std::to_string(round));
      auto large = floats(1000), small = floats(10);
      Operation operation = all_reduce(place.rank == 0 ? large : small);
      if (round == 1 && place.rank == 0) operation = barrier();
      if (round == 2 && place.rank == 0) operation.reduce = ReduceOp::kMax;
      if (round >= 3) {
        operation.kind = place.rank == 0 ? OpKind::kSend : OpKind::kRecv;
        operation.in = round == 3 ? large : small;
        operation.out = round == 3 ? small : large;
        operation.root_or_peer = 1 - place.rank;
      }
      const auto result = run(*backend, operation, milliseconds(400));
      expect(!result && (result.error().code == ErrorCode::kTimeout ||
                         result.error().code == ErrorCode::kPeerLost),
             "round " + std::to_string(round));
      backend->close(in(seconds(1))).value();
    }
  });
}

TEST_CASE("a rank that is killed is named at once") {
  run_ranks(3,
            [](const RankPlace& place) {
              const auto backend = place.backend();
              auto numbers = floats(1000);
              run(*backend, all_reduce(numbers), seconds(20)).value();
              if (place.rank == 1) kill(getpid(), SIGKILL);
              const auto start = std::chrono::steady_clock::now();
              const auto result = run(*backend, all_reduce(numbers), seconds(20));
              expect(!result && result.error().code == ErrorCode::kPeerLost, "no peer is lost");
              expect(elapsed(start) < 3, "took " + std::to_string(elapsed(start)));
              backend->abort(in(seconds(1))).value();
            },
            {1});
}

TEST_CASE("a rank that is killed in the middle of a message is noticed") {
  run_ranks(2,
            [](const RankPlace& place) {
              const auto backend = place.backend();
              std::vector<float> numbers(30'000'000, 1);
              if (place.rank == 1) {
                // Its receiver stands still, so that the message cannot go through, and then it
                // dies.
                Operation send{.kind = OpKind::kSend, .in = numbers};
                kill(place.pids[0], SIGSTOP);
                const auto pending = backend->start({&send, 1}, in(seconds(20))).value();
                pending->wait(in(milliseconds(300)));
                kill(place.pids[0], SIGCONT);
                kill(getpid(), SIGKILL);
              }
              place.meet("never", 1);
              Operation receive{.kind = OpKind::kRecv, .root_or_peer = 1, .out = numbers};
              const auto start = std::chrono::steady_clock::now();
              const auto result = run(*backend, receive, seconds(20));
              expect(!result && result.error().code == ErrorCode::kPeerLost, "no peer is lost");
              expect(elapsed(start) < 5, "took " + std::to_string(elapsed(start)));
            },
            {1});
}

TEST_CASE("a stopped rank costs the others no more than their deadline") {
  run_ranks(3,
            [](const RankPlace& place) {
              const auto backend = place.backend();
              auto numbers = floats(4'000'000);
              run(*backend, all_reduce(numbers), seconds(20)).value();
              if (place.rank == 0) kill(getpid(), SIGSTOP);
              const auto start = std::chrono::steady_clock::now();
              const auto result = run(*backend, all_reduce(numbers), milliseconds(800));
              expect(!result, "reduced without rank 0");
              expect(elapsed(start) < 1.8, "took " + std::to_string(elapsed(start)));
              const auto close = std::chrono::steady_clock::now();
              backend->close(in(seconds(1))).value();
              expect(elapsed(close) < 1, "closing took " + std::to_string(elapsed(close)));
              place.meet("failed", 1);
              if (place.rank == 2) kill(place.pids[0], SIGKILL);
            },
            {0});
}

TEST_CASE("a rank that is slow, message by message, cannot stretch a deadline") {
  run_ranks(2, [](const RankPlace& place) {
    const auto backend = place.backend();
    std::vector<float> numbers(10);
    std::vector<Operation> messages;
    for (size_t i = 0; i < numbers.size(); ++i) {
      messages.push_back({.kind = place.rank == 0 ? OpKind::kRecv : OpKind::kSend,
                          .root_or_peer = 1 - place.rank,
                          .tag = static_cast<int>(numbers.size() - i),
                          .in = Buffer(numbers).part(i, 1),
                          .out = Buffer(numbers).part(i, 1)});
    }
    if (place.rank == 0) {
      const auto start = std::chrono::steady_clock::now();
      const auto result = backend->run(messages, in(milliseconds(900)));
      expect(!result && result.error().code == ErrorCode::kTimeout, "ten messages in 900 ms");
      expect(elapsed(start) < 1.9, "took " + std::to_string(elapsed(start)));
    } else {
      // Each one comes well within 900 ms of the one before it.
      for (const Operation& message : messages) {
        usleep(250'000);
        if (!run(*backend, message, seconds(5))) return;
      }
      expect(false, "rank 0 took all ten");
    }
  });
}

TEST_CASE("stop() from another thread ends what waits, at once") {
  run_ranks(2, [](const RankPlace& place) {
    for (const int round : {0, 1, 2}) {
      const auto backend = place.backend(seconds(20), "round" + std::to_string(round));
      if (place.rank == 0) {
        auto numbers = floats(round == 0 ? 1 : 3'000'000);
        std::thread stopper([&] {
          usleep(50'000);
          backend->stop();
        });
        Operation operation = all_reduce(numbers);
        if (round == 2) operation = {.kind = OpKind::kSend, .root_or_peer = 1, .in = numbers};
        const auto start = std::chrono::steady_clock::now();
        fails(*backend, operation, seconds(20), ErrorCode::kAborted, "stopped");
        expect(elapsed(start) < 1, "took " + std::to_string(elapsed(start)));
        stopper.join();
        expect(!backend->status(), "status after stop()");
        backend->abort(in(seconds(1))).value();
      }
      place.meet("stopped" + std::to_string(round));
      // The other side of it: the connection was closed.
      if (place.rank == 1) {
        auto numbers = floats(1);
        fails(*backend, all_reduce(numbers), seconds(5), ErrorCode::kPeerLost, "the other side");
      }
    }
  });
}

TEST_CASE("abort() at any moment, two hundred times") {
  run_ranks(
      2,
      [](const RankPlace& place) {
        for (int round = 0; round < 200; ++round) {
          auto made = make_gloo_backend(place.plan(seconds(20), "round" + std::to_string(round)));
          // The other one may have made it and be gone already.
          if (!made) expect(made.error().code == ErrorCode::kPeerLost, made.error().message);
          if (!made) continue;
          const auto backend = std::move(*made);
          std::vector<float> numbers(static_cast<size_t>(1) << (round % 20), 1);
          std::vector<float> other(numbers.size());
          const Operation receive{
              .kind = OpKind::kRecv, .root_or_peer = 1 - place.rank, .tag = 5, .out = other};
          std::shared_ptr<Pending> pending;
          if (round % 3 == 0) {
            // The other one may have gone already.
            auto begun = backend->start({&receive, 1}, in(seconds(20)));
            if (begun) pending = *begun;
          }
          std::thread aborter([&] {
            usleep(static_cast<useconds_t>(round * 37 % 3000));
            if (round % 2 == place.rank || round % 5 == 0) backend->abort(in(seconds(2))).value();
          });
          const auto start = std::chrono::steady_clock::now();
          Result<void> result;
          while (result)
            result = run(*backend, all_reduce(numbers), seconds(20));
          expect(result.error().code == ErrorCode::kAborted ||
                     result.error().code == ErrorCode::kPeerLost,
                 result.error().message);
          if (pending && round % 2 == 0) {
            expect(pending->wait(in(seconds(20))).has_value(), "the message goes on");
          }
          expect(elapsed(start) < 3, "took " + std::to_string(elapsed(start)));
          aborter.join();
          if (round % 7 == 0) backend->close(in(seconds(2))).value();
        }
      },
      {}, seconds(100));
}

TEST_CASE("closing in order disturbs nobody who is not done yet") {
  // Each rank closes as soon as it is done, while the others still wake up in the same operation.
  run_ranks(
      3,
      [](const RankPlace& place) {
        for (int round = 0; round < 500; ++round) {
          const auto backend = place.backend(seconds(20), "round" + std::to_string(round));
          const size_t count = size_t{1} << (round % 16);
          std::vector<float> part(count, 1), all(3 * count);
          Operation operation{.root_or_peer = round % 3, .in = part, .out = all};
          const std::array kinds{OpKind::kAllReduce, OpKind::kGather, OpKind::kBarrier,
                                 OpKind::kBroadcast, OpKind::kReduce};
          operation.kind = kinds[static_cast<size_t>(round) % kinds.size()];
          if (operation.kind != OpKind::kGather) operation.out = part;
          const Result<void> result = run(*backend, operation, seconds(20));
          expect(result.has_value(), std::string(to_string(operation.kind)) + " #" +
                                         std::to_string(round) + ": " +
                                         (result ? "" : result.error().message));
          backend->close(in(seconds(2))).value();
        }
      },
      {}, seconds(100));
}

TEST_CASE("an end with messages under way frees everything") {
  run_ranks(2, [](const RankPlace& place) {
    std::vector<float> numbers(1'000'000, 1);
    auto backend = place.backend();
    const Operation operation{.kind = place.rank == 0 ? OpKind::kSend : OpKind::kRecv,
                              .root_or_peer = 1 - place.rank,
                              .tag = 3 + place.rank,  // never meet
                              .in = numbers,
                              .out = numbers};
    auto kept = backend->start({&operation, 1}, in(seconds(20))).value();
    auto dropped = backend->start({&operation, 1}, in(seconds(20))).value();
    dropped.reset();
    place.meet("begun");
    if (place.rank == 0) backend->close(in(seconds(2))).value();
    backend.reset();
    const auto end = kept->wait(in(seconds(20)));
    expect(end.has_value() && !*end, "the message goes on");
  });
}

}  // namespace muster::comm::detail
