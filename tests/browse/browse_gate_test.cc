// SPDX-License-Identifier: Apache-2.0
#include "supervisor/browse/browse_gate.h"

#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <vector>

#include "loop/loop_test.h"

namespace muster {

TEST_CASE_FIXTURE(LoopTest, "jobs take turns, one piece at a time") {
  BrowseGate gate(loop);
  std::atomic<int> running{0};
  std::atomic<bool> together{false};
  std::string order;
  std::vector<std::unique_ptr<BrowseJob>> jobs(3);
  for (size_t i = 0; i < jobs.size(); ++i) {
    jobs[i] = gate.add(
        [&] {
          if (++running > 1) together = true;
          --running;
        },
        [&, i] {
          order += static_cast<char>('a' + i);
          if (order.size() < 9) jobs[i]->wake();
        });
    jobs[i]->wake();
  }
  REQUIRE(run_until([&] { return order.size() >= 9; }));
  CHECK(order.substr(0, 9) == "abcabcabc");
  CHECK_FALSE(together.load());
}

TEST_CASE_FIXTURE(LoopTest, "idle work waits for all that is asked for") {
  BrowseGate gate(loop);
  std::string order;
  auto idle = gate.add([] {}, [&] { order += 'i'; }, BrowseGate::Urgency::kIdle);
  std::unique_ptr<BrowseJob> asked;
  asked = gate.add([] {},
                   [&] {
                     order += 'a';
                     if (order.size() < 3) asked->wake();
                   });
  asked->wake();
  idle->wake();
  REQUIRE(run_until([&] { return order.size() == 4; }));
  CHECK(order == "aaai");
}

TEST_CASE_FIXTURE(LoopTest, "a job that is woken while it runs runs once more") {
  BrowseGate gate(loop);
  int ran = 0;
  auto job = gate.add([] {}, [&] { ++ran; });
  job->wake();
  job->wake();
  job->wake();
  REQUIRE(run_until([&] { return ran == 2; }));
  run_until([] { return false; }, Milliseconds(50));
  CHECK(ran == 2);
}

TEST_CASE_FIXTURE(LoopTest, "a dropped job is silent and what its piece uses stays until it ends") {
  BrowseGate gate(loop);
  auto used = std::make_shared<std::atomic<int>>(0);
  bool told = false;
  auto job = gate.add([used] { ++*used; }, [&] { told = true; });
  job->wake();
  job.reset();
  auto waiting = gate.add([] {}, [&] { told = true; });
  waiting->wake();
  waiting.reset();
  REQUIRE(run_until([&] { return used.use_count() == 1; }));
  CHECK_FALSE(told);
}

TEST_CASE_FIXTURE(LoopTest, "a job may outlive its gate") {
  auto gate = std::make_unique<BrowseGate>(loop);
  auto job = gate->add([] {}, [] {});
  job->wake();
  gate.reset();
  job->wake();
  run_until([&] { return !loop.has_requests(); });
}

}  // namespace muster
