// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/known_operations.h"

#include <time.h>

#include <algorithm>

#include "supervisor/diagnosis/wait_status.h"

namespace muster {

namespace {

RankEnd end_of(const RankState& rank) {
  if (rank.phase == RankPhase::kSpawnFailed) return RankEnd::kDied;
  if (rank.phase != RankPhase::kExited) return RankEnd::kRunning;
  if (decode_wait_status(rank.wait_status).success()) return RankEnd::kFinished;
  return rank.stopped_for == StopReason::kNone ? RankEnd::kDied : RankEnd::kStopped;
}

}  // namespace

int64_t page_now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::vector<KnownRank> known_operations(const AttemptState& attempt, const WorkerPages& pages) {
  std::vector<KnownRank> known;
  for (const RankState& rank : attempt.ranks) {
    if (rank.node != attempt.node) continue;
    const std::shared_ptr<const UniqueFd> page = pages.find(rank.local_rank);
    known.push_back({rank.rank, end_of(rank), 0, page ? operations_in(*page) : nullptr});
  }
  return known;
}

int64_t highest_step(const AttemptState& attempt, const WorkerPages& pages) {
  int64_t step = -1;
  for (const RankState& rank : attempt.ranks) {
    const auto page = rank.node == attempt.node ? pages.find(rank.local_rank) : nullptr;
    if (!page) continue;
    if (const auto content = worker_page::read_page(page->get())) {
      step = std::max(step, content->progress.step);
    }
  }
  return step;
}

std::shared_ptr<const RankOperations> operations_in(const UniqueFd& page) {
  const auto content = worker_page::read_page(page.get());
  if (!content || content->communicators.empty()) return nullptr;
  return std::make_shared<const RankOperations>(operations_of(*content, page_now_ns()));
}

bool ended_in_broken_operation(const UniqueFd& page) {
  const std::shared_ptr<const RankOperations> operations = operations_in(page);
  if (!operations) return false;
  const RankCall* last = last_ended(*operations).call;
  return last != nullptr && last->failed();
}

}  // namespace muster
