// SPDX-License-Identifier: Apache-2.0
#include "nccl/train/agree.h"

#include <cstdint>
#include <vector>

namespace muster::train::detail {

namespace {

using comm::Communicator;
using comm::Error;
using comm::Result;

constexpr size_t kLongestReason = 4000;

std::string list_of(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  }
  return text;
}

}  // namespace

Result<void> agree(Communicator& communicator, const Result<void>& mine) {
  std::string reason = mine ? "" : mine.error().message.substr(0, kLongestReason);
  if (!mine && reason.empty()) reason = to_string(mine.error().code);
  const int64_t code = mine ? 0 : static_cast<int64_t>(mine.error().code);
  // First only how long each one's reason is, 0 for none.
  const std::vector<int64_t> sent = {code, static_cast<int64_t>(reason.size())};
  std::vector<int64_t> all(2 * static_cast<size_t>(communicator.size()));
  Result<void> done = communicator.all_gather(sent, all).wait();
  if (!done) return done;

  std::vector<int> failed;
  int first = -1;
  for (int rank = 0; rank < communicator.size(); ++rank) {
    if (all[2 * static_cast<size_t>(rank) + 1] == 0) continue;
    if (first < 0) first = rank;
    failed.push_back(communicator.ranks()[static_cast<size_t>(rank)]);
  }
  if (first < 0) return {};
  reason.resize(static_cast<size_t>(all[2 * static_cast<size_t>(first) + 1]));
  done = communicator.broadcast(reason, first).wait();
  if (!done) return done;
  Error error;
  error.code = static_cast<comm::ErrorCode>(all[2 * static_cast<size_t>(first)]);
  error.message = list_of(failed) + ": " + reason;
  error.ranks = failed;
  return error;
}

Result<std::string> share(Communicator& communicator, const std::string& text) {
  std::vector<int64_t> size = {static_cast<int64_t>(text.size())};
  Result<void> done = communicator.broadcast(size, 0).wait();
  if (!done) return done.error();
  std::string shared = text;
  shared.resize(static_cast<size_t>(size[0]));
  done = communicator.broadcast(shared, 0).wait();
  if (!done) return done.error();
  return shared;
}

}  // namespace muster::train::detail
