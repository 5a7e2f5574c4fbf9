// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "supervisor/diagnosis/collectives.h"

namespace muster::pages_test {

using comm::DataType;
using comm::ReduceOp;
using comm::detail::OpKind;
using worker_page::OpState;

constexpr int64_t kSecond = 1'000'000;

// 4.2 MB of float32.
constexpr uint64_t kGradients = 1'050'000;

inline std::vector<int32_t> first_ranks(int count) {
  std::vector<int32_t> ranks(static_cast<size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

// Of this process, so that a busy machine does not count.
struct CpuTime {
  std::clock_t begin = std::clock();
  double seconds() const { return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC; }
};

// What the pages of a job's ranks say.
class Pages {
 public:
  explicit Pages(int ranks) {
    for (int rank = 0; rank < ranks; ++rank)
      known_.push_back({rank, RankEnd::kRunning, 0, std::make_shared<RankOperations>()});
  }

  KnownRank& known(int rank) { return known_[static_cast<size_t>(rank)]; }

  // The communicator of that id on one rank, made when it is first asked for.
  RankCommunicator& of(int rank, uint64_t id = 1, std::vector<int32_t> members = {},
                       const std::string& name = "world") {
    auto& all = operations(rank).communicators;
    for (RankCommunicator& one : all) {
      if (one.id == id) return one;
    }
    if (members.empty()) members = first_ranks(static_cast<int>(known_.size()));
    RankCommunicator& made = all.emplace_back();
    made.id = id;
    made.name = name;
    made.size = static_cast<int>(members.size());
    made.members = rank_runs(members);
    const auto at = std::find(members.begin(), members.end(), rank);
    made.rank = static_cast<int>(at - members.begin());
    return made;
  }

  // A copy of another rank's.
  RankCommunicator& of(int rank, const RankCommunicator& like) {
    for (RankCommunicator& one : operations(rank).communicators) {
      if (one.id == like.id) return one = like;
    }
    return operations(rank).communicators.emplace_back(like);
  }

  // The rank has been in a call for `seconds`.
  RankCall& in(int rank, OpKind kind, uint64_t sequence, double seconds, uint64_t id = 1) {
    RankCommunicator& communicator = of(rank, id);
    RankCall& call = communicator.calls.emplace_back();
    call.kind = kind;
    call.sequence = sequence;
    call.type = DataType::kFloat32;
    call.count = kGradients;
    call.age_us = static_cast<int64_t>(seconds * 1e6);
    uint64_t& last = call.message() ? communicator.messages : communicator.collectives;
    last = std::max(last, sequence);
    return call;
  }
  RankCall& ended(int rank, OpKind kind, uint64_t sequence, double seconds_ago, uint64_t id = 1) {
    RankCall& call = in(rank, kind, sequence, seconds_ago + 1, id);
    call.took_us = kSecond;
    call.state = OpState::kDone;
    return call;
  }
  RankCall& failed(int rank, OpKind kind, uint64_t sequence, double after_s, uint64_t id = 1) {
    RankCall& call = in(rank, kind, sequence, after_s, id);
    call.took_us = call.age_us;
    call.state = OpState::kFailed;
    return call;
  }
  RankCall& message(int rank, OpKind kind, int peer, double seconds) {
    RankCall& call = in(rank, kind, 1, seconds);
    call.count = 1;
    call.type = DataType::kInt32;
    call.root_or_peer = peer;
    return call;
  }
  void died(int rank) { known(rank).end = RankEnd::kDied; }

  event::CollectivesFound find(int64_t least_us = kHangUs) const {
    return find_collectives(known_, least_us);
  }
  std::vector<std::string> texts(int64_t least_us = kHangUs) const {
    std::vector<std::string> texts;
    for (const event::CollectiveFinding& finding : find(least_us).found)
      texts.push_back(finding.text);
    return texts;
  }
  std::string text(int64_t least_us = kHangUs) const {
    std::string all;
    for (const std::string& one : texts(least_us))
      all += (all.empty() ? "" : "\n") + one;
    return all;
  }

 private:
  RankOperations& operations(int rank) {
    return const_cast<RankOperations&>(*known(rank).operations);
  }
  std::vector<KnownRank> known_;
};

}  // namespace muster::pages_test
