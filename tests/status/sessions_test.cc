// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/sessions.h"

#include <doctest/doctest.h>

#include "loop/loop_test.h"

namespace muster {

namespace {

struct Counted final : StatusSession {
  explicit Counted(int& to) : alive(to) { ++alive; }
  ~Counted() override { --alive; }
  int& alive;
};

}  // namespace

TEST_CASE_FIXTURE(LoopTest, "a session that is over lives until the next turn") {
  int alive = 0;
  Sessions sessions(loop);
  auto first = std::make_unique<Counted>(alive);
  Counted& one = *first;
  sessions.add(std::move(first));
  sessions.add(std::make_unique<Counted>(alive));
  sessions.end(one);
  sessions.end(one);
  CHECK(alive == 2);
  CHECK(sessions.size() == 1);
  REQUIRE(run_until([&] { return alive == 1; }));
}

TEST_CASE_FIXTURE(LoopTest, "sessions go with their owner, those that are over too") {
  int alive = 0;
  {
    Sessions sessions(loop);
    auto first = std::make_unique<Counted>(alive);
    Counted& one = *first;
    sessions.add(std::move(first));
    sessions.add(std::make_unique<Counted>(alive));
    sessions.end(one);
  }
  CHECK(alive == 0);
  bool turned = false;
  loop.post([&] { turned = true; });
  REQUIRE(run_until([&] { return turned; }));
}

}  // namespace muster
