// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/rank_operations.h"

#include <doctest/doctest.h>

#include <vector>

namespace muster {

using worker_page::OpState;

TEST_CASE("of a long ring the calls that matter are kept") {
  worker_page::PageContent page;
  worker_page::PageCommunicator& communicator = page.communicators.emplace_back();
  for (uint64_t i = 1; i <= 60; ++i) {
    worker_page::PageOperation& operation = communicator.operations.emplace_back();
    operation.sequence = i;
    operation.start_ns = static_cast<int64_t>(i) * 1'000'000;
    if (i > 30) continue;
    operation.end_ns = operation.start_ns + 500'000;
    operation.state = OpState::kDone;
  }
  const RankOperations operations = operations_of(page, 100'000'000);
  std::vector<uint64_t> kept;
  for (const RankCall& call : operations.communicators.at(0).calls)
    kept.push_back(call.sequence);
  CHECK(kept == std::vector<uint64_t>{25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 60});
  CHECK(operations.communicators[0].calls[0].age_us == 75'000);
  CHECK(operations.communicators[0].calls[0].took_us == 500);
}

TEST_CASE("the last to end is told, and of those that ended at once the one entered last") {
  RankOperations operations;
  CHECK(last_ended(operations).call == nullptr);
  RankCommunicator& communicator = operations.communicators.emplace_back();
  for (uint64_t sequence = 1; sequence <= 4; ++sequence) {
    RankCall& call = communicator.calls.emplace_back();
    call.sequence = sequence;
    call.age_us = 100 - static_cast<int64_t>(sequence);
    // 1 ends 20 us ago, 2 and 3 end 10 us ago, 4 has not.
    if (sequence < 4) call.took_us = call.age_us - (sequence == 1 ? 20 : 10);
  }
  CHECK(last_ended(operations).call == &communicator.calls[2]);
  CHECK(last_ended(operations).communicator == &communicator);
}

TEST_CASE("members are kept as runs, and found again") {
  const std::vector<int32_t> ranks = {0, 8, 16, 24, 1, 2, 3, 40};
  RankCommunicator communicator;
  communicator.members = rank_runs(ranks);
  CHECK(communicator.members.size() == 3);
  for (size_t i = 0; i < ranks.size(); ++i)
    CHECK(member_at(communicator, static_cast<int>(i)) == ranks[i]);
  CHECK(member_at(communicator, 8) == -1);
  std::vector<int32_t> wild;
  wild.reserve(200);
  for (int i = 0; i < 200; ++i)
    wild.push_back(i * i);
  CHECK(rank_runs(wild).empty());  // too many runs
}

}  // namespace muster
