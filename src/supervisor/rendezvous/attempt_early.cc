// SPDX-License-Identifier: Apache-2.0
//
// The root of an attempt whose workers are still being stopped.

#include <algorithm>
#include <set>
#include <utility>

#include "supervisor/rendezvous/attempt_record.h"

namespace muster {

void AttemptRecord::ending(int node, NodeOutcome so_far) {
  Part& member = members_[static_cast<size_t>(node)];
  if (looked_early_ || !member.open || member.so_far) return;
  so_far.complete = false;
  member.so_far = std::move(so_far);
  ++ending_;
}

void AttemptRecord::close(Part& member) {
  member.open = false;
  --open_;
  if (!member.so_far) return;
  member.so_far.reset();
  --ending_;
}

// Whether nothing that is still to come can take its place.
bool AttemptRecord::stays(const event::FailureFound& root) const {
  if (first_loss()) return false;
  const std::vector<event::FailureFound> ended = failures(true);
  const auto own = std::find_if(ended.begin(), ended.end(), [&](const event::FailureFound& one) {
    return one.rank == root.rank;
  });
  if (own == ended.end() || shows_victim(*own)) return false;
  std::set<int> known;
  for (const event::FailureFound& failure : ended)
    known.insert(failure.rank);
  const std::vector<int> blamed = blamed_ranks(ended);
  return std::all_of(blamed.begin(), blamed.end(), [&](int rank) { return known.contains(rank); });
}

std::optional<event::FailureFound> AttemptRecord::find_early() {
  if (looked_early_ || open_ == 0 || ending_ < open_) return std::nullopt;
  looked_early_ = true;
  AttemptRecord as_if(*this);
  for (size_t node = 0; node < members_.size(); ++node) {
    auto so_far = std::exchange(members_[node].so_far, std::nullopt);
    if (so_far) as_if.settled(static_cast<int>(node), std::move(*so_far));
  }
  ending_ = 0;
  const std::optional<event::FailureFound> root = as_if.findings().root;
  if (root && as_if.stays(*root)) told_ = root;
  return told_;
}

}  // namespace muster
