// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/attempt_record.h"

#include <algorithm>
#include <utility>

#include "loop/check.h"
#include "supervisor/diagnosis/diagnose.h"
#include "supervisor/rendezvous/victims.h"

namespace muster {

namespace {

constexpr char kLostBeforeItTold[] = "its node was lost before it could tell more";

}  // namespace

std::string_view lost_name(Coordinator::Lost how) {
  switch (how) {
    case Coordinator::Lost::kClosed:
      return "closed";
    case Coordinator::Lost::kSilent:
      return "silent";
    case Coordinator::Lost::kLeft:
      break;
  }
  return "left";
}

std::string lost_text(const std::string& host, Coordinator::Lost how) {
  switch (how) {
    case Coordinator::Lost::kClosed:
      return host + " was lost: its connection was closed";
    case Coordinator::Lost::kSilent:
      return host + " was lost: nothing was heard of it any more";
    case Coordinator::Lost::kLeft:
      break;
  }
  return host + " left";
}

AttemptRecord::AttemptRecord(int number, std::vector<Member> members)
    : number_(number), open_(members.size()) {
  members_.resize(members.size());
  for (size_t i = 0; i < members.size(); ++i)
    members_[i].facts = std::move(members[i]);
}

void AttemptRecord::failed(int node, event::FailureFound preliminary) {
  Part& member = members_[static_cast<size_t>(node)];
  if (!member.open || member.notice) return;
  member.notice = std::move(preliminary);
  arrivals_.push_back({node, false});
}

void AttemptRecord::settled(int node, NodeOutcome outcome) {
  Part& member = members_[static_cast<size_t>(node)];
  if (!member.open) return;
  if (outcome.root) failed(node, *outcome.root);
  // A failure of which we have heard outweighs what a confused peer says later.
  if (member.notice || !outcome.trouble.empty()) outcome.complete = false;
  // The attempt could not begin everywhere; that is told as it is, and no worker is blamed.
  if (!outcome.trouble.empty()) stop_ordered();
  member.open = false;
  --open_;
  if (outcome.complete) ++complete_;
  member.outcome = std::move(outcome);
}

void AttemptRecord::gone(int node, Coordinator::Lost how) {
  Part& member = members_[static_cast<size_t>(node)];
  MUST(member.open);
  member.open = false;
  member.gone = how;
  --open_;
  arrivals_.push_back({node, true});
}

void AttemptRecord::stop_ordered() {
  if (!stopped_at_) stopped_at_ = arrivals_.size();
}

std::vector<std::string> AttemptRecord::gone_hosts() const {
  std::vector<std::string> hosts;
  for (const Arrival& arrival : arrivals_) {
    if (arrival.loss) hosts.push_back(part(arrival.node).facts.host);
  }
  return hosts;
}

bool AttemptRecord::was_lost(int node) const {
  const std::optional<Coordinator::Lost>& gone = part(node).gone;
  return gone && *gone != Coordinator::Lost::kLeft;
}

// The arrival that is to blame, if any.
std::optional<size_t> AttemptRecord::cause() const {
  std::optional<size_t> failure, lost;
  for (size_t i = 0; i < arrivals_.size(); ++i) {
    const bool in_time = !stopped_at_ || i < *stopped_at_;
    if (!arrivals_[i].loss) {
      if (!failure || (in_time && of_lost_peer(found(arrivals_[*failure])) &&
                       !of_lost_peer(found(arrivals_[i])))) {
        failure = i;
      }
    } else if (was_lost(arrivals_[i].node)) {
      if (!lost) lost = i;
    }
  }
  if (failure && stopped_at_ && *failure >= *stopped_at_) failure.reset();
  if (!lost) return failure;
  const bool it_told = failure && *failure < *lost && was_lost(arrivals_[*failure].node);
  return it_told ? failure : lost;
}

event::FailureFound AttemptRecord::found(const Arrival& arrival) const {
  const Part& member = part(arrival.node);
  event::FailureFound found;
  if (arrival.loss) {
    found.rank = -1;
    found.kind = "node_lost";
    found.exit_code = 1;
    found.message = lost_text(member.facts.host, *member.gone);
  } else if (member.outcome && member.outcome->root) {
    found = *member.outcome->root;
  } else {
    found = *member.notice;
    if (member.gone) found.note = kLostBeforeItTold;
  }
  found.attempt = number_;
  found.host = member.facts.host;
  found.node = arrival.node;
  return found;
}

void AttemptRecord::add_failures(const Arrival& arrival, bool is_root, Findings& findings) const {
  const Part& member = part(arrival.node);
  if (arrival.loss && !was_lost(arrival.node)) return;
  auto add = [&](event::FailureFound other) {
    if (findings.others.size() >= kMaxOtherCauses) return;
    other.attempt = number_;
    other.host = member.facts.host;
    other.node = arrival.node;
    findings.others.push_back(std::move(other));
  };
  if (!is_root) add(found(arrival));
  if (arrival.loss || !member.outcome) return;
  for (const event::FailureFound& other : member.outcome->others)
    add(other);
}

std::vector<event::VictimGroup> AttemptRecord::victims(int root_rank) const {
  VictimFold fold(root_rank);
  for (const Part& member : members_) {
    const Member& facts = member.facts;
    if (member.outcome) {
      for (const event::VictimGroup& group : member.outcome->victims)
        fold.add(group.reason, group.ranks, facts.first_rank, facts.workers);
    } else if (member.gone && *member.gone != Coordinator::Lost::kLeft) {
      const int last = facts.first_rank + facts.workers - 1;
      fold.add("lost with their node",
               std::to_string(facts.first_rank) + "-" + std::to_string(last), facts.first_rank,
               facts.workers);
    }
  }
  return fold.groups();
}

event::CollectivesFound AttemptRecord::collectives() const {
  std::vector<KnownRank> known;
  for (const Part& member : members_) {
    const Member& facts = member.facts;
    for (int i = 0; member.gone && *member.gone != Coordinator::Lost::kLeft && i < facts.workers;
         ++i) {
      known.push_back({facts.first_rank + i, RankEnd::kDied, 0, nullptr});
    }
    if (!member.outcome) continue;
    for (const KnownRank& one : member.outcome->operations) {
      const bool own = one.rank >= facts.first_rank && one.rank < facts.first_rank + facts.workers;
      if (own) known.push_back(one);
    }
  }
  return find_collectives(known, kHangAtEndUs);
}

AttemptRecord::Findings AttemptRecord::findings() const {
  Findings findings;
  findings.collectives = collectives();
  const std::optional<size_t> cause = this->cause();
  if (cause) {
    findings.root = found(arrivals_[*cause]);
    findings.charged = !arrivals_[*cause].loss;
    add_failures(arrivals_[*cause], true, findings);
    for (size_t i = 0; i < arrivals_.size(); ++i) {
      if (i != *cause) add_failures(arrivals_[i], false, findings);
    }
    findings.victims = victims(findings.root->rank);
  }
  for (size_t i = 0; i < members_.size(); ++i) {
    const auto& outcome = members_[i].outcome;
    if (!outcome) continue;
    const std::string& host = members_[i].facts.host;
    findings.step = std::max(findings.step, outcome->step);
    if (outcome->left_running && !findings.left_running) {
      findings.left_running = true;
      findings.left_running_host = host;
    }
    if (!outcome->trouble.empty() && findings.trouble.empty()) {
      findings.trouble = members_.size() > 1 ? host + ": " + outcome->trouble : outcome->trouble;
    }
  }
  return findings;
}

}  // namespace muster
