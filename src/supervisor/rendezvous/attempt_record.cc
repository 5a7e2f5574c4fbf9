// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/attempt_record.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "loop/check.h"
#include "supervisor/cli/ranges.h"
#include "supervisor/rendezvous/victims.h"

namespace muster {

namespace {

constexpr char kLostBeforeItTold[] = "its node was lost before it could tell more";

// Kinds that no lost peer explains.
const std::set<std::string_view> kOwnFaults = {"exec_not_found",
                                               "exec_denied",
                                               "exec_bad_format",
                                               "spawn_failed",
                                               "oom_kill",
                                               "killed",
                                               "segfault",
                                               "bus_error",
                                               "fpe",
                                               "illegal_instruction",
                                               "python_syntax_error",
                                               "python_import_error",
                                               "memory_error",
                                               "script_not_found",
                                               "library_missing",
                                               "disk_full",
                                               "cuda_oom",
                                               "gpu_fault",
                                               "too_few_gpus",
                                               "duplicate_gpu",
                                               "driver_mismatch",
                                               "sanitizer",
                                               "permission_denied",
                                               "fd_limit",
                                               "data_worker_died"};

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
  close(member);
  if (outcome.complete) ++complete_;
  member.outcome = std::move(outcome);
}

void AttemptRecord::gone(int node, Coordinator::Lost how) {
  Part& member = members_[static_cast<size_t>(node)];
  MUST(member.open);
  close(member);
  member.gone = how;
  arrivals_.push_back({node, true});
}

void AttemptRecord::stop_ordered() {
  if (!stopped_at_) stopped_at_ = arrivals_.size();
}

void AttemptRecord::hung(event::FailureFound found) {
  found.attempt = number_;
  for (size_t i = 0; i < members_.size(); ++i) {
    const Member& facts = members_[i].facts;
    const bool here =
        found.rank >= facts.first_rank && found.rank < facts.first_rank + facts.workers;
    if (!here && (i > 0 || found.rank >= 0)) continue;
    found.host = facts.host;
    found.node = static_cast<int>(i);
    if (here) found.local_rank = found.rank - facts.first_rank;
  }
  hung_ = std::move(found);
  stop_ordered();
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

std::optional<size_t> AttemptRecord::first_loss() const {
  for (size_t i = 0; i < arrivals_.size(); ++i) {
    if (arrivals_[i].loss && was_lost(arrivals_[i].node)) return i;
  }
  return std::nullopt;
}

// Whether the node was lost before the failure, or may have been.
bool AttemptRecord::loss_explains(size_t loss, const event::FailureFound& root) const {
  const auto told = std::find_if(arrivals_.begin(), arrivals_.end(), [&](const Arrival& arrival) {
    return !arrival.loss && arrival.node == root.node;
  });
  const auto at = static_cast<size_t>(told - arrivals_.begin());
  if (at > loss || told == arrivals_.end()) return true;
  if (was_lost(root.node)) return false;
  const bool at_once = *part(arrivals_[loss].node).gone == Coordinator::Lost::kClosed;
  return !at_once || !kOwnFaults.contains(root.kind);
}

event::FailureFound AttemptRecord::loss_of(int node) const {
  const Part& member = part(node);
  event::FailureFound found;
  found.attempt = number_;
  found.host = member.facts.host;
  found.node = node;
  found.rank = -1;
  found.kind = "node_lost";
  found.exit_code = 1;
  found.message = lost_text(member.facts.host, *member.gone);
  return found;
}

// In the order of their ends. Its outcome is better than the notice, but for the time: that was
// looked at when it came.
std::vector<event::FailureFound> AttemptRecord::failures_of(int node) const {
  const Part& member = part(node);
  std::vector<event::FailureFound> failures;
  if (member.outcome && member.outcome->root) {
    failures = member.outcome->others;
    failures.insert(failures.begin(), *member.outcome->root);
  } else if (member.notice) {
    failures = {*member.notice};
    if (member.gone) failures[0].note = kLostBeforeItTold;
  }
  int64_t shift = 0;
  for (event::FailureFound& failure : failures) {
    failure.attempt = number_;
    failure.host = member.facts.host;
    failure.node = node;
    const bool noticed = member.notice && member.notice->rank == failure.rank;
    if (noticed && member.notice->time_us > 0 && failure.time_us > 0) {
      shift = member.notice->time_us - failure.time_us;
    }
  }
  for (event::FailureFound& failure : failures)
    if (failure.time_us > 0) failure.time_us += shift;
  return failures;
}

std::vector<event::FailureFound> AttemptRecord::failures(bool before_the_stop) const {
  std::vector<std::pair<int64_t, event::FailureFound>> timed;
  int64_t last_us = 0;  // whoever tells no time came after those who came before
  for (size_t i = 0; i < arrivals_.size(); ++i) {
    if (arrivals_[i].loss || in_time(i) != before_the_stop) continue;
    int64_t own_us = 0;  // within a node the order is known
    for (event::FailureFound& failure : failures_of(arrivals_[i].node)) {
      own_us = std::max(own_us, failure.time_us > 0 ? failure.time_us : last_us);
      timed.emplace_back(own_us, std::move(failure));
    }
    last_us = std::max(last_us, own_us);
  }
  std::stable_sort(timed.begin(), timed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<event::FailureFound> failures;
  failures.reserve(timed.size());
  for (auto& [time_us, failure] : timed)
    failures.push_back(std::move(failure));
  return failures;
}

AttemptEnds AttemptRecord::ends(const event::CollectivesFound& collectives) const {
  AttemptEnds ends;
  ends.failures = failures(true);
  blame_the_missing(ends.failures, collectives);
  for (size_t node = 0; node < members_.size(); ++node) {
    const Part& member = members_[node];
    const Member& facts = member.facts;
    if (!member.outcome) continue;
    for (event::FailureFound suspect : member.outcome->suspects) {
      suspect.attempt = number_;
      suspect.host = facts.host;
      suspect.node = static_cast<int>(node);
      ends.stopped.push_back(std::move(suspect));
    }
    if (member.outcome->complete) {
      for (int i = 0; i < facts.workers; ++i)
        ends.finished.push_back(facts.first_rank + i);
      continue;
    }
    for (int rank : ranks_of(member, &NodeOutcome::finished))
      ends.finished.push_back(rank);
  }
  std::sort(ends.finished.begin(), ends.finished.end());
  add_unknown(ends);
  return ends;
}

// Its own among those that its outcome names there.
std::vector<int> AttemptRecord::ranks_of(const Part& member, std::string NodeOutcome::*ranges) {
  if (!member.outcome) return {};
  const Member& facts = member.facts;
  std::vector<int> ranks =
      parse_ranges((*member.outcome).*ranges, static_cast<size_t>(facts.workers));
  std::erase_if(ranks, [&](int rank) {
    return rank < facts.first_rank || rank >= facts.first_rank + facts.workers;
  });
  return ranks;
}

// Ranks of which nothing was told, though it matters that they were there.
void AttemptRecord::add_unknown(AttemptEnds& ends) const {
  std::set<int> known(ends.finished.begin(), ends.finished.end());
  for (const event::FailureFound& failure : ends.failures)
    known.insert(failure.rank);
  for (const event::FailureFound& failure : failures(false))
    known.insert(failure.rank);
  for (const Part& member : members_)
    for (int rank : ranks_of(member, &NodeOutcome::more_failed))
      known.insert(rank);
  std::set<int> told = known;
  for (const event::FailureFound& stopped : ends.stopped)
    told.insert(stopped.rank);
  const std::vector<int> blamed = blamed_ranks(ends.failures);
  std::vector<event::FailureFound> unknown;
  for (size_t node = 0; node < members_.size(); ++node) {
    const Part& member = members_[node];
    if (member.gone) continue;
    for (int i = 0; i < member.facts.workers; ++i) {
      const int rank = member.facts.first_rank + i;
      if (!known.contains(rank)) ++ends.still_running;
      const bool wanted =
          ends.still_running <= 1 || std::binary_search(blamed.begin(), blamed.end(), rank);
      if (told.contains(rank) || !wanted) continue;
      event::FailureFound stopped;
      stopped.attempt = number_;
      stopped.rank = rank;
      stopped.local_rank = i;
      stopped.host = member.facts.host;
      stopped.node = static_cast<int>(node);
      unknown.push_back(std::move(stopped));
    }
  }
  ends.stopped.insert(ends.stopped.end(), unknown.begin(), unknown.end());
}

// One that was found without its node's word has only its rank.
void AttemptRecord::place(event::FailureFound& failure) const {
  if (!failure.host.empty() || failure.rank < 0) return;
  for (size_t node = 0; node < members_.size(); ++node) {
    const Member& facts = members_[node].facts;
    const int local_rank = failure.rank - facts.first_rank;
    if (local_rank < 0 || local_rank >= facts.workers) continue;
    failure.host = facts.host;
    failure.node = static_cast<int>(node);
    failure.local_rank = local_rank;
  }
}

void AttemptRecord::find_guilty(Findings& findings) const {
  Causes causes = find_causes(ends(findings.collectives));
  for (event::FailureFound& cause : causes.independent)
    place(cause);
  std::vector<event::FailureFound>& guilty = causes.independent;
  const std::optional<size_t> loss = first_loss();
  const bool loss_first = loss && (guilty.empty() || loss_explains(*loss, guilty.front()));
  for (size_t i = 0; i < arrivals_.size(); ++i) {
    if (!arrivals_[i].loss || !was_lost(arrivals_[i].node)) continue;
    guilty.insert(loss_first && i == *loss ? guilty.begin() : guilty.end(),
                  loss_of(arrivals_[i].node));
  }
  std::vector<event::FailureFound> late = failures(false);
  if (told_) {
    for (std::vector<event::FailureFound>* found : {&guilty, &late, &causes.victims})
      std::erase_if(*found,
                    [&](const event::FailureFound& one) { return one.rank == told_->rank; });
    guilty.insert(guilty.begin(), *told_);
  }
  if (guilty.empty()) return;
  findings.root = guilty.front();
  findings.charged = findings.root->rank >= 0;
  findings.others.assign(guilty.begin() + 1, guilty.end());
  findings.others.insert(findings.others.end(), late.begin(), late.end());
  findings.others.insert(findings.others.end(), causes.victims.begin(), causes.victims.end());
  findings.victims = victims(findings);
  if (findings.others.size() > kMaxOtherCauses) findings.others.resize(kMaxOtherCauses);
}

std::vector<event::VictimGroup> AttemptRecord::victims(const Findings& findings) const {
  std::set<int> guilty = {findings.root->rank};
  for (const event::FailureFound& other : findings.others) {
    if (!shows_victim(other)) guilty.insert(other.rank);
  }
  VictimFold fold(std::move(guilty));
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
  for (const event::FailureFound& other : findings.others) {
    if (shows_victim(other))
      fold.add(victim_text(other), std::to_string(other.rank), other.rank, 1);
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
  find_guilty(findings);
  if (!findings.root && hung_) {
    findings.root = hung_;
    findings.charged = true;
    findings.victims = victims(findings);
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
