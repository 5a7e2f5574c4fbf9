// SPDX-License-Identifier: Apache-2.0
#include "links.h"

#include <algorithm>
#include <tuple>

namespace doubles {

// Pairs connect in one order everywhere, (lower, higher) rank, so that they cannot wait for each
// other in a circle.
Outcome Links::open(Channel channel, std::vector<int> ranks, const StopSignal& stop) {
  std::sort(ranks.begin(), ranks.end(),
            [this](int a, int b) { return std::minmax(a, rank_) < std::minmax(b, rank_); });
  for (int rank : ranks) {
    if (rank == rank_ || fd(channel, rank) >= 0) continue;
    Fd made;
    Outcome outcome =
        rank_ < rank ? call(rank, channel, 0, stop, &made) : await(rank, channel, 0, stop, &made);
    if (outcome != Outcome::kDone) return outcome;
    std::lock_guard lock(mutex_);
    open_[{channel, rank}] = std::move(made);
  }
  return Outcome::kDone;
}

int Links::fd(Channel channel, int rank) const {
  std::lock_guard lock(mutex_);
  auto found = open_.find({channel, rank});
  return found == open_.end() ? -1 : found->second.get();
}

Outcome Links::call(int rank, Channel channel, int turn, const StopSignal& stop, Fd* out) {
  Outcome outcome = connect_to(peers_[static_cast<size_t>(rank)].address, stop, out);
  if (outcome != Outcome::kDone) return outcome;
  Hello hello{static_cast<int>(channel), turn, rank_};
  std::byte taken{};
  return exchange(
      {Piece::to(out->get(), &hello, sizeof hello), Piece::from(out->get(), &taken, sizeof taken)},
      stop);
}

Outcome Links::await(int rank, Channel channel, int turn, const StopSignal& stop, Fd* out) {
  std::tuple key{static_cast<int>(channel), turn, rank};
  while (!waiting_.contains(key)) {
    Fd came;
    Outcome outcome = accept_from(listener_.get(), stop, &came);
    if (outcome != Outcome::kDone) return outcome;
    Hello hello;
    outcome = exchange({Piece::from(came.get(), &hello, sizeof hello)}, stop);
    if (outcome == Outcome::kStopped) return outcome;
    // Who has gone again before it was greeted did not come.
    if (outcome == Outcome::kLost) continue;
    waiting_[{hello.channel, hello.turn, hello.rank}] = std::move(came);
  }
  *out = std::move(waiting_[key]);
  waiting_.erase(key);
  std::byte taken{};
  return exchange({Piece::to(out->get(), &taken, sizeof taken)}, stop);
}

Outcome Links::meet(const std::vector<int>& members, int turn, const PeerInfo& own,
                    std::vector<PeerInfo>* all, const StopSignal& stop) {
  all->assign(members.size(), own);
  size_t bytes = members.size() * sizeof(PeerInfo);
  if (members.front() != rank_) {
    Fd fd;
    Outcome outcome = call(members.front(), Channel::kMeeting, turn, stop, &fd);
    if (outcome != Outcome::kDone) return outcome;
    return exchange(
        {Piece::to(fd.get(), &own, sizeof own), Piece::from(fd.get(), all->data(), bytes)}, stop);
  }
  std::vector<Fd> guests;
  for (size_t i = 1; i < members.size(); ++i) {
    Fd& guest = guests.emplace_back();
    Outcome outcome = await(members[i], Channel::kMeeting, turn, stop, &guest);
    if (outcome != Outcome::kDone) return outcome;
    outcome = exchange({Piece::from(guest.get(), &(*all)[i], sizeof(PeerInfo))}, stop);
    if (outcome != Outcome::kDone) return outcome;
  }
  std::vector<Piece> pieces;
  pieces.reserve(guests.size());
  for (const Fd& guest : guests)
    pieces.push_back(Piece::to(guest.get(), all->data(), bytes));
  return exchange(std::move(pieces), stop);
}

}  // namespace doubles
