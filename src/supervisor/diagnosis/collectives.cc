// SPDX-License-Identifier: Apache-2.0
// In each communicator the oldest collective that some member is still in is looked at. Members
// that have not entered it are missing, unless their pages are older than its beginning; members
// that entered something else under its number are a mismatch; if nobody is missing and all agree,
// it is the operation itself that takes long. Of members that are gone and have told nothing no
// more is said than that: they may have done their part before.
#include "supervisor/diagnosis/collectives.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "supervisor/cli/ranges.h"
#include "supervisor/diagnosis/collective_text.h"
#include "supervisor/diagnosis/communicator_groups.h"

namespace muster {

namespace {

using comm::detail::OpKind;

// A page that is older than this may never be followed by another.
constexpr int64_t kSoonUs = 30'000'000;

// Where the members of a group stand towards one collective.
struct Standing {
  uint64_t sequence = 0;
  std::vector<std::pair<const Seat*, const RankCall*>> waiting;
  std::vector<int> done;     // ranks of the world
  std::vector<int> missing;  // alive, and their pages are young enough to say so
  std::vector<int> died;     // before they entered it
  std::vector<int> ended;
  std::vector<int> closed;
  std::vector<int> unmade;  // they have not told of this communicator
  // Gone, and they have told nothing: they may have entered it, or not.
  std::vector<int> lost;  // died
  std::vector<int> left;  // ended well
  size_t unknown = 0;     // other members of whom nothing is known
  bool doubtful = false;  // the next page of some will tell
  int64_t waited_us = 0;
  bool running = false;  // some still wait
  bool failed = false;   // some gave up
  bool due = false;
  bool got_out = false;  // some have done it

  std::vector<int> waiting_ranks() const {
    std::vector<int> ranks;
    ranks.reserve(waiting.size());
    for (const auto& [seat, call] : waiting)
      ranks.push_back(seat->world());
    return ranks;
  }
  std::vector<int> absent(bool gone_too) const {
    std::vector<int> all = missing;
    for (const std::vector<int>* some : {&died, &ended, &closed, &unmade})
      all.insert(all.end(), some->begin(), some->end());
    if (gone_too) all.insert(all.end(), lost.begin(), lost.end());
    return gone_too && all.empty() ? left : all;
  }
};

class GroupLook {
 public:
  GroupLook(const KnownWorld& world, const Group& group, const Thresholds& thresholds)
      : world_(world), group_(group), thresholds_(thresholds) {}

  void add_findings(std::vector<Ranked>& found) {
    if (!find_sequence()) return;
    for (const auto& [rank, seat] : group_.seats)
      place(seat);
    place_silent();
    const bool mismatched = standing_.due && add_mismatch(found);
    const std::vector<int> absent = standing_.absent(!entered_by_all());
    const bool died = !standing_.died.empty() || !standing_.lost.empty();
    if ((standing_.due || died) && !absent.empty()) return add_missing(found, absent);
    if (standing_.due && !mismatched && !standing_.doubtful) add_stuck(found);
  }

 private:
  // The oldest that somebody is in, and how long.
  bool find_sequence() {
    Standing& s = standing_;
    for (const auto& [rank, seat] : group_.seats) {
      for (const RankCall& call : seat.communicator->calls) {
        if (call.message() || !seat.waits_in(call)) continue;
        if (s.sequence == 0 || call.sequence < s.sequence) s.sequence = call.sequence;
      }
    }
    for (const auto& [rank, seat] : group_.seats) {
      const RankCall* call =
          s.sequence > 0 ? collective_at(*seat.communicator, s.sequence) : nullptr;
      if (call == nullptr || !seat.waits_in(*call)) continue;
      const int64_t waited_us = seat.waited_us(*call);
      s.waited_us = std::max(s.waited_us, waited_us);
      s.running = s.running || !call->failed();
      s.failed = s.failed || call->failed();
      s.due = s.due || thresholds_.passed(*call, waited_us);
    }
    return s.sequence > 0;
  }

  // A page from before the operation began, or from just after it, accuses nobody.
  bool young_enough(const KnownRank& known) const {
    const int64_t least_us = standing_.failed ? thresholds_.failed_us : thresholds_.running_us;
    return standing_.waited_us - known.elapsed_us >= least_us;
  }

  void place_absent(const KnownRank& known, std::vector<int>& alive) {
    if (known.end == RankEnd::kDied) {
      standing_.died.push_back(known.rank);
    } else if (known.end == RankEnd::kFinished) {
      standing_.ended.push_back(known.rank);
    } else if (young_enough(known)) {
      alive.push_back(known.rank);
    } else if (known.elapsed_us < kSoonUs) {
      standing_.doubtful = true;
    } else {
      ++standing_.unknown;
    }
  }

  void place(const Seat& seat) {
    const RankCommunicator& communicator = *seat.communicator;
    const RankCall* call = collective_at(communicator, standing_.sequence);
    if (call != nullptr && seat.waits_in(*call)) {
      standing_.waiting.emplace_back(&seat, call);
    } else if (call != nullptr || communicator.collectives >= standing_.sequence) {
      standing_.done.push_back(seat.world());
      standing_.got_out = standing_.got_out || call == nullptr || call->done();
    } else {
      place_absent(*seat.known, communicator.closed ? standing_.closed : standing_.missing);
    }
  }

  // Members that have not told of the communicator.
  void place_silent() {
    const auto size = static_cast<size_t>(group_.any->size);
    if (!group_.listed()) {
      standing_.unknown += size - std::min(size, group_.seats.size());
      return;
    }
    for (int rank = 0; rank < group_.any->size; ++rank) {
      if (group_.seat(rank) != nullptr) continue;
      const KnownRank* known = world_.find(group_.world_rank(rank));
      if (known != nullptr && known->operations) {
        place_absent(*known, standing_.unmade);
      } else if (known != nullptr && known->end == RankEnd::kDied) {
        standing_.lost.push_back(known->rank);
      } else if (known != nullptr && known->end == RankEnd::kFinished) {
        standing_.left.push_back(known->rank);
      } else {
        ++standing_.unknown;
      }
    }
  }

  const RankCall& call() const { return *standing_.waiting.front().second; }
  const RankCommunicator& communicator() const {
    return *standing_.waiting.front().first->communicator;
  }

  event::CollectiveFinding finding(const char* kind, const std::vector<int>& suspects) const {
    event::CollectiveFinding finding;
    finding.kind = kind;
    fill_operation(finding, call(), communicator());
    finding.suspects = format_ranges(suspects, ",");
    finding.waiting = format_ranges(standing_.waiting_ranks(), ",");
    finding.waited_us = standing_.waited_us;
    return finding;
  }

  std::string wait_text(const std::vector<int>& ranks) const {
    const char* one = standing_.running ? " waits since " : " waited ";
    const char* many = standing_.running ? " wait since " : " waited ";
    return ranks_words(ranks) + (ranks.size() == 1 ? one : many) + wait_words(standing_.waited_us);
  }

  // What must be equal on all members.
  using Likeness = std::tuple<int, int, int, uint64_t, int>;
  static Likeness likeness(const RankCall& call) {
    int root = -1, reduce = -1;
    uint64_t count = 0;
    switch (call.kind) {
      case OpKind::kBroadcast:
        root = call.root_or_peer;
        count = call.count;
        break;
      case OpKind::kReduce:
        root = call.root_or_peer;
        [[fallthrough]];
      case OpKind::kAllReduce:
      case OpKind::kReduceScatter:
        reduce = static_cast<int>(call.reduce);
        count = call.count;
        break;
      case OpKind::kScatter:
      case OpKind::kGather:
        root = call.root_or_peer;
        break;
      default:  // each rank may have another size
        break;
    }
    const int type = call.kind == OpKind::kBarrier ? -1 : static_cast<int>(call.type);
    return {static_cast<int>(call.kind), type, root, count, reduce};
  }

  struct Camp {
    const RankCall* call = nullptr;
    std::vector<int> ranks;
  };

  // Those who called the same; the most first, then the one with the lowest rank.
  std::vector<Camp> camps() const {
    std::map<Likeness, Camp> by_likeness;
    for (const auto& [rank, seat] : group_.seats) {
      const RankCall* call = collective_at(*seat.communicator, standing_.sequence);
      if (call == nullptr) continue;
      Camp& camp = by_likeness[likeness(*call)];
      camp.call = call;
      camp.ranks.push_back(seat.world());
    }
    std::vector<Camp> camps;
    camps.reserve(by_likeness.size());
    for (auto& [alike, camp] : by_likeness)
      camps.push_back(std::move(camp));
    std::sort(camps.begin(), camps.end(), [](const Camp& a, const Camp& b) {
      return a.ranks.size() != b.ranks.size() ? a.ranks.size() > b.ranks.size()
                                              : a.ranks.front() < b.ranks.front();
    });
    return camps;
  }

  bool add_mismatch(std::vector<Ranked>& found) const {
    constexpr size_t kTold = 3;
    const std::vector<Camp> all = camps();
    if (all.size() < 2) return false;
    std::vector<int> suspects;
    std::string text;
    for (size_t i = 1; i < all.size(); ++i) {
      suspects.insert(suspects.end(), all[i].ranks.begin(), all[i].ranks.end());
      if (i > kTold) continue;
      text += (i == 1 ? "" : "; ") + ranks_words(all[i].ranks) + " called " +
              full_call_words(*all[i].call, group_);
    }
    if (all.size() > kTold + 1) text += "; others something else again";
    text +=
        " where " + ranks_words(all[0].ranks) + " called " + full_call_words(*all[0].call, group_);
    Ranked ranked{Ranked::kMismatch, finding("mismatch", suspects)};
    ranked.finding.text = text;
    found.push_back(std::move(ranked));
    return true;
  }

  // Those that are alive, with what they do instead if it is the same for all of them.
  std::string missing_text() const {
    if (standing_.missing.empty()) return "";
    std::string text = ranks_words(standing_.missing) + " never entered " +
                       sized_call_words(call(), communicator());
    std::set<std::string> where;
    for (int rank : standing_.missing) {
      where.insert(whereabouts(world_, rank).text);
      if (where.size() > 1) return text;
    }
    return text + (standing_.missing.size() == 1 ? " and " : " and each ") + *where.begin();
  }

  void add_missing(std::vector<Ranked>& found, const std::vector<int>& absent) const {
    const Standing& s = standing_;
    Ranked ranked{Ranked::kIdle, finding("missing", absent)};
    std::string& text = ranked.finding.text;
    const std::string operation = sized_call_words(call(), communicator());
    text = missing_text();
    auto it = [&] { return text.find(operation) == std::string::npos ? operation : "it"; };
    add_words(text, s.died, " died before it entered ", " died before they entered ", it());
    add_words(text, s.ended, " ended without entering ", " ended without entering ", it());
    add_words(text, s.closed, " closed the communicator before ",
              " closed the communicator before ", it());
    add_words(text, s.unmade, " never made the communicator of ",
              " never made the communicator of ", it());
    add_gone(text);
    text += "; " + wait_text(s.waiting_ranks());
    if (const std::string what = it(); what == operation) text += " in " + what;
    const bool left = !s.died.empty() || !s.ended.empty() || !s.closed.empty();
    const bool only_gone = s.missing.empty() && s.unmade.empty();
    if (left || only_gone) {
      ranked.weight = Ranked::kDied;
    } else if (!s.missing.empty() && !whereabouts(world_, s.missing.front()).idle) {
      ranked.weight = Ranked::kBusy;
    }
    found.push_back(std::move(ranked));
  }

  static void add_words(std::string& text, const std::vector<int>& ranks, const char* one,
                        const char* many, const std::string& what) {
    if (ranks.empty()) return;
    text +=
        (text.empty() ? "" : "; ") + ranks_words(ranks) + (ranks.size() == 1 ? one : many) + what;
  }
  void add_gone(std::string& text) const {
    add_words(text, standing_.lost, " has died", " have died", "");
    add_words(text, standing_.left, " has ended", " have ended", "");
  }

  // Nobody gets out of such an operation before everybody has done his part in it.
  static bool holds_all(OpKind kind) {
    return kind == OpKind::kAllReduce || kind == OpKind::kAllGather ||
           kind == OpKind::kReduceScatter || kind == OpKind::kAllToAll || kind == OpKind::kBarrier;
  }

  bool entered_by_all() const { return standing_.got_out && holds_all(call().kind); }

  // Those who have finished it and are in a later one now.
  std::vector<int> gone_on() const {
    std::vector<int> ranks;
    for (const auto& [rank, seat] : group_.seats) {
      for (const RankCall& call : seat.communicator->calls) {
        if (call.message() || call.sequence <= standing_.sequence || !seat.waits_in(call)) continue;
        const auto& done = standing_.done;
        if (std::find(done.begin(), done.end(), seat.world()) == done.end()) continue;
        ranks.push_back(seat.world());
        break;
      }
    }
    return ranks;
  }

  // The others have got out, so it is these that stand still: stopped, or starved.
  void add_left_behind(std::vector<Ranked>& found, const std::vector<int>& others) const {
    const std::vector<int> behind = standing_.waiting_ranks();
    Ranked ranked{Ranked::kIdle, finding("stuck", behind)};
    ranked.finding.waiting = format_ranges(others, ",");
    ranked.finding.text =
        ranks_words(behind) + (behind.size() == 1 ? " is" : " are") + " still in " +
        sized_call_words(call(), communicator()) + " since " + wait_words(standing_.waited_us) +
        "; " + ranks_words(others) +
        (others.size() == 1 ? " has finished it and waits" : " have finished it and wait") +
        " in a later one";
    found.push_back(std::move(ranked));
  }

  void add_stuck(std::vector<Ranked>& found) const {
    const Standing& s = standing_;
    const std::vector<int> others = gone_on();
    if (!others.empty() && s.running && holds_all(call().kind)) {
      return add_left_behind(found, others);
    }
    Ranked ranked{Ranked::kStuck, finding("stuck", {})};
    std::string& text = ranked.finding.text;
    const std::string operation = sized_call_words(call(), communicator());
    if (s.done.empty() && s.unknown == 0) {
      text = s.waiting.size() == 1 ? "" : "all of ";
      text += ranks_words(s.waiting_ranks()) + (s.waiting.size() == 1 ? " is" : " are") + " in " +
              operation;
      text += s.running ? " since " + wait_words(s.waited_us) + ", and it does not end"
                        : ", which failed after " + wait_words(s.waited_us);
    } else {
      text = wait_text(s.waiting_ranks()) + " in " + operation;
      add_words(text, s.done, " has finished it", " have finished it", "");
      add_gone(text);
      if (s.unknown > 0) {
        text += "; of " + std::to_string(s.unknown) + " of its " +
                std::to_string(group_.any->size) + " ranks nothing is known";
      }
    }
    found.push_back(std::move(ranked));
  }

  const KnownWorld& world_;
  const Group& group_;
  const Thresholds& thresholds_;
  Standing standing_;
};

}  // namespace

event::CollectivesFound find_collectives(std::span<const KnownRank> ranks, int64_t least_us) {
  const KnownWorld world(ranks);
  const Thresholds thresholds{least_us, std::min(least_us, kFailedWaitUs)};
  std::vector<Ranked> found;
  for (const Group& group : world.groups)
    GroupLook(world, group, thresholds).add_findings(found);
  find_message_waits(world, thresholds, found);
  find_deaths(world, ranks, found);
  std::stable_sort(found.begin(), found.end(), [](const Ranked& a, const Ranked& b) {
    return std::pair(a.weight, -a.finding.waited_us) < std::pair(b.weight, -b.finding.waited_us);
  });
  event::CollectivesFound all;
  for (Ranked& ranked : found) {
    if (all.found.size() == kMaxCollectiveFindings) {
      ++all.left_out;
    } else {
      all.found.push_back(std::move(ranked.finding));
    }
  }
  return all;
}

}  // namespace muster
