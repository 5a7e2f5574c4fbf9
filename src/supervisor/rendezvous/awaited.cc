// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/awaited.h"

#include <algorithm>
#include <cstdio>

#include "supervisor/rendezvous/admission.h"

namespace muster {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kRecordAgain{10'000};
constexpr milliseconds kRecordChange{1'000};
constexpr milliseconds kTellAfter{2'000};

int64_t seconds_up(milliseconds left) {
  return left.count() > 0 ? (left.count() + 999) / 1000 : 0;
}

std::string clearing_text(const Roster& roster) {
  const size_t count = roster.count(Part::kClearing);
  if (count == 0) return "";
  return count == 1 ? "; 1 node still ends its old workers"
                    : "; " + std::to_string(count) + " nodes still end their old workers";
}

}  // namespace

std::vector<std::string> waiting_hosts(const Roster& roster) {
  std::vector<std::string> hosts;
  for (const auto& [order, node] : roster.nodes()) {
    if (node.part != Part::kWaiting) continue;
    hosts.push_back(node.facts.host + " (" + std::to_string(node.facts.workers) + ")");
    if (hosts.size() == kMaxHostsNamed) break;
  }
  return hosts;
}

std::string have_text(const Roster& roster) {
  const std::vector<std::string> hosts = waiting_hosts(roster);
  if (hosts.empty()) return "have none";
  std::string text = "have ";
  for (size_t i = 0; i < hosts.size(); ++i)
    text += (i > 0 ? ", " : "") + hosts[i];
  const size_t more = roster.count(Part::kWaiting) - hosts.size();
  return more > 0 ? text + " and " + std::to_string(more) + " more" : text;
}

std::string join_names(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i == kMaxHostsNamed) return text + ", ...";
    text += (i > 0 ? ", " : "") + names[i];
  }
  return text;
}

std::string countdown_text(milliseconds left) {
  const int64_t seconds = seconds_up(left);
  char text[40];
  if (seconds < 3600) {
    std::snprintf(text, sizeof text, "%02d:%02d", static_cast<int>(seconds / 60),
                  static_cast<int>(seconds % 60));
  } else {
    std::snprintf(text, sizeof text, "%lld:%02d:%02d", static_cast<long long>(seconds / 3600),
                  static_cast<int>(seconds / 60 % 60), static_cast<int>(seconds % 60));
  }
  return text;
}

event::NodesAwaited awaited_now(const Roster& roster, const JobTerms& terms, milliseconds left) {
  event::NodesAwaited awaited;
  awaited.have = static_cast<int>(roster.count(Part::kWaiting));
  awaited.min = terms.min_nodes;
  awaited.max = terms.max_nodes;
  awaited.hosts = waiting_hosts(roster);
  awaited.left_ms = std::max<int64_t>(left.count(), 0);
  awaited.text = std::to_string(awaited.have) + " of " + nnodes_text(terms) +
                 " nodes: " + have_text(roster) + clearing_text(roster) + "; ";
  if (awaited.have < terms.min_nodes) {
    awaited.text += "waiting for " + std::to_string(terms.min_nodes - awaited.have) + " more, " +
                    countdown_text(left) + " left";
  } else if (roster.count(Part::kClearing) > 0) {
    awaited.text += "starting when they have ended";
  } else {
    const int more = terms.max_nodes - awaited.have;
    awaited.text += "starting in " + std::to_string(seconds_up(left)) + " s unless " +
                    std::to_string(more) + (more == 1 ? " more joins" : " more join");
  }
  return awaited;
}

void AwaitedPace::began(Time now) {
  began_ = now;
  changed_ = true;
}

AwaitedPace::Time AwaitedPace::next_record() const {
  if (!recorded_) return began_;
  return *recorded_ + (changed_ ? kRecordChange : kRecordAgain);
}

AwaitedPace::Time AwaitedPace::next_broadcast() const {
  const Time lasts = began_ + kTellAfter;
  return told_ ? std::max(lasts, *told_ + kAwaitedEvery) : lasts;
}

bool AwaitedPace::record_due(Time now) {
  if (now < next_record()) return false;
  recorded_ = now;
  changed_ = false;
  return true;
}

bool AwaitedPace::broadcast_due(Time now) {
  if (now < next_broadcast()) return false;
  told_ = now;
  return true;
}

AwaitedPace::Time AwaitedPace::wake_at() const {
  return std::min(next_record(), next_broadcast());
}

}  // namespace muster
