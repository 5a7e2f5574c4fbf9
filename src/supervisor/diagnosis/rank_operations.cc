// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/rank_operations.h"

#include <algorithm>

#include "supervisor/diagnosis/text_lines.h"

namespace muster {

namespace {

using worker_page::OpState;
using worker_page::PageCommunicator;
using worker_page::PageOperation;

RankCall call_of(const PageOperation& operation, int64_t now_ns) {
  RankCall call;
  call.sequence = operation.sequence;
  call.kind = operation.kind;
  call.type = operation.type;
  call.reduce = operation.reduce;
  call.state = operation.state;
  call.count = operation.count;
  call.root_or_peer = operation.root_or_peer;
  call.tag = operation.tag;
  // A worker may have written any number.
  call.age_us = std::max<int64_t>(0, now_ns - operation.start_ns) / 1000;
  if (operation.state != OpState::kRunning) {
    const int64_t took_us = std::max<int64_t>(0, operation.end_ns - operation.start_ns) / 1000;
    call.took_us = std::min(took_us, call.age_us);
  }
  return call;
}

// Of those that match, the first ones and the very last, or only the last ones.
std::vector<RankCall> some_calls(const PageCommunicator& from, int64_t now_ns, bool done) {
  std::vector<const PageOperation*> all;
  for (const PageOperation& operation : from.operations) {
    if ((operation.state == OpState::kDone) == done) all.push_back(&operation);
  }
  const size_t most = done ? kMaxDoneCalls : kMaxOpenCalls;
  if (all.size() > most) {
    const auto surplus = static_cast<std::ptrdiff_t>(all.size() - most);
    const auto at = done ? all.begin() : all.end() - 1 - surplus;
    all.erase(at, at + surplus);
  }
  std::vector<RankCall> calls;
  calls.reserve(all.size());
  for (const PageOperation* operation : all)
    calls.push_back(call_of(*operation, now_ns));
  return calls;
}

RankCommunicator communicator_of(const PageCommunicator& from, int64_t now_ns) {
  RankCommunicator communicator;
  communicator.id = from.id;
  communicator.rank = from.rank;
  communicator.size = from.size;
  communicator.closed = from.closed;
  communicator.name = clean_line(from.name);
  communicator.members = rank_runs(from.members);
  communicator.collectives = from.collectives;
  communicator.messages = from.messages;
  communicator.calls = some_calls(from, now_ns, true);
  for (RankCall& call : some_calls(from, now_ns, false))
    communicator.calls.push_back(call);
  std::stable_sort(communicator.calls.begin(), communicator.calls.end(),
                   [](const RankCall& a, const RankCall& b) { return a.age_us > b.age_us; });
  return communicator;
}

}  // namespace

RankOperations operations_of(const worker_page::PageContent& page, int64_t now_ns) {
  RankOperations operations;
  for (const PageCommunicator& communicator : page.communicators)
    operations.communicators.push_back(communicator_of(communicator, now_ns));
  return operations;
}

LatestCall last_ended(const RankOperations& operations) {
  LatestCall last;
  for (const RankCommunicator& communicator : operations.communicators) {
    for (const RankCall& call : communicator.calls) {
      if (call.took_us < 0) continue;
      const int64_t ago_us = call.age_us - call.took_us;
      if (last.call == nullptr || ago_us <= last.call->age_us - last.call->took_us) {
        last = {&call, &communicator};
      }
    }
  }
  return last;
}

int member_at(const RankCommunicator& communicator, int rank) {
  for (const RankRun& run : communicator.members) {
    if (rank < run.count) return run.first + rank * run.step;
    rank -= run.count;
  }
  return -1;
}

std::vector<RankRun> rank_runs(const std::vector<int32_t>& ranks) {
  std::vector<RankRun> runs;
  for (size_t i = 0; i < ranks.size();) {
    RankRun run{ranks[i], 1, 1};
    if (i + 1 < ranks.size()) run.step = ranks[i + 1] - ranks[i];
    while (i + static_cast<size_t>(run.count) < ranks.size() &&
           ranks[i + static_cast<size_t>(run.count)] == run.first + run.count * run.step) {
      ++run.count;
    }
    i += static_cast<size_t>(run.count);
    if (runs.size() == kMaxRankRuns) return {};
    runs.push_back(run);
  }
  return runs;
}

}  // namespace muster
