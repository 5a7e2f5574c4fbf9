// SPDX-License-Identifier: Apache-2.0
// Who waits for whom is a graph; a rank that itself waits for another explains nothing. So of a
// chain only the rank before its end is told, with those who wait behind it, and of a circle
// everybody once.
#include <algorithm>

#include "supervisor/cli/ranges.h"
#include "supervisor/diagnosis/collective_text.h"
#include "supervisor/diagnosis/communicator_groups.h"

namespace muster {

namespace {

using comm::detail::OpKind;

struct Wait {
  const Group* group = nullptr;
  const Seat* seat = nullptr;
  const RankCall* call = nullptr;
  int peer = -1;  // of the world
  int64_t waited_us = 0;

  int waiter() const { return seat->world(); }
};

// By waiter; of several messages the one that has waited longest.
using Waits = std::map<int, Wait>;

bool peer_is_gone(const KnownWorld& world, const Group& group, const RankCall& call, int peer) {
  const Seat* seat = group.seat(call.root_or_peer);
  const KnownRank* known = world.find(peer);
  return (known && known->end == RankEnd::kDied) || (seat && seat->communicator->closed);
}

Waits waits_in(const KnownWorld& world, const Thresholds& thresholds) {
  Waits waits;
  for (const Group& group : world.groups) {
    for (const auto& [rank, seat] : group.seats) {
      for (const RankCall& call : seat.communicator->calls) {
        if (!call.message() || !seat.waits_in(call) || seat.gone()) continue;
        const int peer = group.world_rank(call.root_or_peer);
        const Wait wait{&group, &seat, &call, peer, seat.waited_us(call)};
        const bool due = thresholds.passed(call, wait.waited_us);
        if (peer < 0 || !(due || peer_is_gone(world, group, call, peer))) continue;
        const auto [at, fresh] = waits.emplace(seat.world(), wait);
        if (!fresh && wait.waited_us > at->second.waited_us) at->second = wait;
      }
    }
  }
  return waits;
}

// Where chains lead: to a last waiter, or into a circle.
class Chains {
 public:
  explicit Chains(const Waits& waits) {
    for (const auto& [rank, wait] : waits)
      follow(waits, rank);
  }
  std::map<int, std::vector<int>> behind;  // by the last waiter
  struct Circle {
    std::vector<int> ranks;
    std::vector<int> behind;
  };
  std::vector<Circle> circles;

 private:
  struct End {
    int last = -1;
    size_t circle = 0;  // if there is no last one
  };

  void follow(const Waits& waits, int rank) {
    std::vector<int> path;
    End end;
    for (auto at = waits.find(rank); at != waits.end(); at = waits.find(at->second.peer)) {
      if (const auto known = ends_.find(at->first); known != ends_.end()) {
        end = known->second;
        break;
      }
      const auto begin = std::find(path.begin(), path.end(), at->first);
      if (begin != path.end()) {
        end = {-1, circles.size()};
        add_circle({begin, path.end()});
        path.erase(begin, path.end());
        break;
      }
      path.push_back(at->first);
      end.last = at->first;
    }
    for (int one : path) {
      ends_.emplace(one, end);
      if (end.last < 0) circles[end.circle].behind.push_back(one);
      if (end.last >= 0 && one != end.last) behind[end.last].push_back(one);
      if (end.last == one) behind[one];
    }
  }

  void add_circle(std::vector<int> ranks) {
    std::rotate(ranks.begin(), std::min_element(ranks.begin(), ranks.end()), ranks.end());
    for (int rank : ranks)
      ends_.emplace(rank, End{-1, circles.size()});
    circles.push_back({std::move(ranks), {}});
  }

  std::map<int, End> ends_;  // of each rank that was followed, so that long chains cost little
};

std::string words(const Wait& wait) {
  const bool sends = wait.call->kind == OpKind::kSend;
  std::string text = sends ? "to send a message to rank " : "for a message from rank ";
  text += std::to_string(wait.peer) + " (" + size_words(bytes_of(*wait.call)) + ", " +
          worker_page::name_of(wait.call->type);
  if (wait.call->tag != 0) text += ", tag " + std::to_string(wait.call->tag);
  text += ")";
  const std::string& name = wait.seat->communicator->name;
  return name.empty() || name == "world" ? text : text + " of \"" + name + "\"";
}

Ranked chain_finding(const KnownWorld& world, const Wait& wait, std::vector<int> behind) {
  Ranked ranked;
  event::CollectiveFinding& finding = ranked.finding;
  const Whereabouts peer = whereabouts(world, wait.peer);
  const Seat* peer_seat = wait.group->seat(wait.call->root_or_peer);
  const bool closed = peer_seat && peer_seat->communicator->closed && !peer.gone;
  finding.kind = "message";
  fill_operation(finding, *wait.call, *wait.seat->communicator);
  finding.suspects = std::to_string(wait.peer);
  finding.waited_us = wait.waited_us;
  const bool over = wait.call->failed();
  finding.text = "rank " + std::to_string(wait.waiter()) + (over ? " waited " : " waits since ") +
                 wait_words(wait.waited_us) + " " + words(wait) + ", which " +
                 (closed ? "has closed that communicator" : peer.text);
  if (!behind.empty()) {
    finding.text +=
        "; " + ranks_words(behind) + (behind.size() == 1 ? " waits" : " wait") + " behind it";
  }
  behind.push_back(wait.waiter());
  finding.waiting = format_ranges(behind, ",");
  ranked.weight = peer.gone || closed ? Ranked::kDied : peer.idle ? Ranked::kIdle : Ranked::kBusy;
  return ranked;
}

Ranked circle_finding(const Waits& waits, const std::vector<int>& circle,
                      const std::vector<int>& behind) {
  constexpr size_t kTold = 3;
  Ranked ranked;
  event::CollectiveFinding& finding = ranked.finding;
  const Wait& first = waits.at(*std::min_element(circle.begin(), circle.end()));
  finding.kind = "circle";
  fill_operation(finding, *first.call, *first.seat->communicator);
  for (int rank : circle)
    finding.waited_us = std::max(finding.waited_us, waits.at(rank).waited_us);
  finding.suspects = format_ranges(circle, ",");
  std::vector<int> all = circle;
  all.insert(all.end(), behind.begin(), behind.end());
  finding.waiting = format_ranges(all, ",");
  finding.text =
      ranks_words(circle) + " wait for each other since " + wait_words(finding.waited_us) + ": ";
  for (size_t i = 0; i < std::min(circle.size(), kTold); ++i) {
    finding.text += (i == 0 ? "rank " : ", rank ") + std::to_string(circle[i]) + " " +
                    words(waits.at(circle[i]));
  }
  if (circle.size() > kTold) finding.text += ", ...";
  ranked.weight = Ranked::kCircle;
  return ranked;
}

}  // namespace

void find_message_waits(const KnownWorld& world, const Thresholds& thresholds,
                        std::vector<Ranked>& found) {
  const Waits waits = waits_in(world, thresholds);
  Chains chains(waits);
  for (auto& [last, ranks] : chains.behind)
    found.push_back(chain_finding(world, waits.at(last), std::move(ranks)));
  for (const Chains::Circle& circle : chains.circles)
    found.push_back(circle_finding(waits, circle.ranks, circle.behind));
}

}  // namespace muster
