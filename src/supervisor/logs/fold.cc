// SPDX-License-Identifier: Apache-2.0
#include "supervisor/logs/fold.h"

namespace muster {

void Fold::add(int rank, std::string_view line, Clock::time_point now, const Emit& emit) {
  std::string text(line);
  uint64_t& after = last_of_rank_[rank];
  auto newest = newest_.find(text);
  // Joining an older group would show the rank's lines out of order.
  if (newest != newest_.end() && newest->second >= after && newest->second >= first_) {
    after = newest->second + 1;
    groups_[newest->second - first_].ranks.insert(rank);
  } else {
    uint64_t number = first_ + groups_.size();
    newest_[text] = number;
    after = number + 1;
    held_ += text.size();
    groups_.push_back({std::move(text), {rank}, now});
  }
  while (!groups_.empty() && (groups_.front().ranks.size() == all_ || held_ > kHoldLimit))
    emit_front(emit);
}

void Fold::advance(Clock::time_point now, const Emit& emit) {
  while (!groups_.empty() && now >= deadline())
    emit_front(emit);
}

void Fold::flush(int rank, const Emit& emit) {
  if (rank < 0) {
    while (!groups_.empty())
      emit_front(emit);
    return;
  }
  auto last = last_of_rank_.find(rank);
  while (last != last_of_rank_.end() && !groups_.empty() && first_ < last->second)
    emit_front(emit);
}

void Fold::emit_front(const Emit& emit) {
  Group group = std::move(groups_.front());
  groups_.pop_front();
  if (auto it = newest_.find(group.line); it != newest_.end() && it->second == first_)
    newest_.erase(it);
  ++first_;
  held_ -= group.line.size();
  emit(group.ranks, group.line);
}

}  // namespace muster
