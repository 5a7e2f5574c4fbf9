// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/sample_push.h"

#include <doctest/doctest.h>

#include "loop/loop_test.h"
#include "supervisor/rendezvous/sample_codec.h"

namespace muster {

namespace {

struct PushTest : LoopTest {
  std::vector<message::Samples> sent;
  size_t count = 1;  // of samples
  bool full = false;
  int taken = 0;

  SamplePush::Callbacks callbacks() {
    return {[this] {
              ++taken;
              return std::vector<RankSample>(count);
            },
            [this](message::Samples batch) {
              if (full) return false;
              sent.push_back(std::move(batch));
              return true;
            }};
  }
  static Assignment assignment(int attempt, int node = 0) {
    Assignment a;
    a.attempt = attempt;
    a.node = node;
    return a;
  }
};

}  // namespace

TEST_CASE_FIXTURE(PushTest, "samples are told again and again once there is an attempt") {
  SamplePush push(loop, callbacks(), Milliseconds(5));
  push.resume();
  push.assigned(assignment(3));
  REQUIRE(run_until([&] { return sent.size() >= 3; }));
  CHECK(sent[0].attempt == 3);
  push.assigned(assignment(4));
  REQUIRE(run_until([&] { return sent.back().attempt == 4; }));
}

TEST_CASE_FIXTURE(PushTest, "samples with many operations go into several messages") {
  auto operations = std::make_shared<RankOperations>();
  for (size_t i = 0; i < kMaxRankCommunicators; ++i) {
    RankCommunicator& communicator = operations->communicators.emplace_back();
    communicator.calls.resize(kMaxOpenCalls + kMaxDoneCalls);
  }
  RankSample sample;
  sample.operations = operations;
  SamplePush push(loop,
                  {[&] { return std::vector<RankSample>(200, sample); },
                   [this](message::Samples batch) {
                     CHECK(encode(AgentMessage(batch)).size() < kMaxSampleBytes + 1024);
                     sent.push_back(std::move(batch));
                     return true;
                   }},
                  Milliseconds(1'000'000));
  push.assigned(assignment(0));
  size_t told = 0;
  CHECK(run_until([&] {
    told = 0;
    for (const message::Samples& batch : sent)
      told += batch.samples.size();
    return told >= 200;
  }));
  CHECK(told == 200);
  CHECK(sent.size() > 1);
}

TEST_CASE_FIXTURE(PushTest, "while somebody looks they come more often") {
  SamplePush push(loop, callbacks(), Milliseconds(1'000'000));
  push.assigned(assignment(0, 1));
  push.watch({5, 1'000'000});
  CHECK(run_until([&] { return sent.size() >= 3; }));
}

TEST_CASE_FIXTURE(PushTest, "what nobody looks at any more is told as rarely as before") {
  SamplePush push(loop, callbacks(), Milliseconds(1'000'000));
  push.watch({1, 0});
  push.assigned(assignment(0, 1));
  loop.run_until([] { return false; }, Milliseconds(30));
  CHECK(sent.empty());
}

TEST_CASE_FIXTURE(PushTest, "many samples are many messages, none are none") {
  SamplePush push(loop, callbacks(), Milliseconds(5));
  count = 2 * kMaxSamplesPerMessage + 1;
  push.assigned(assignment(0));
  REQUIRE(run_until([&] { return sent.size() >= 3; }));
  CHECK(sent[0].samples.size() == kMaxSamplesPerMessage);
  CHECK(sent[2].samples.size() == 1);
  count = 0;
  const size_t before = sent.size();
  const int taken_before = taken;
  REQUIRE(run_until([&] { return taken >= taken_before + 2; }));
  CHECK(sent.size() == before);
}

TEST_CASE_FIXTURE(PushTest, "a connection that takes nothing is not pressed") {
  SamplePush push(loop, callbacks(), Milliseconds(5));
  full = true;
  count = 3 * kMaxSamplesPerMessage;
  push.assigned(assignment(0));
  REQUIRE(run_until([&] { return taken >= 2; }));
  CHECK(sent.empty());
}

TEST_CASE_FIXTURE(PushTest, "nothing is told while there is no connection") {
  SamplePush push(loop, callbacks(), Milliseconds(5));
  push.assigned(assignment(2));
  push.pause();
  loop.run_until([] { return false; }, Milliseconds(30));
  CHECK(taken == 0);
  push.resume();
  CHECK(run_until([&] { return !sent.empty(); }));
}

}  // namespace muster
