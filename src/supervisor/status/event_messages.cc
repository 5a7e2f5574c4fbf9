// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/event_messages.h"

#include <algorithm>
#include <unordered_set>

#include "supervisor/job/event_json.h"
#include "supervisor/status/event_hub.h"

namespace muster {

namespace {

void write_events(JsonOut& out, const std::deque<Event>& events, int64_t since) {
  out.key("events");
  out.begin_array();
  auto from = events.begin();
  if (events.size() > EventHub::kMaxEvents) {
    from = events.end() - static_cast<std::ptrdiff_t>(EventHub::kMaxEvents);
  }
  for (; from != events.end(); ++from) {
    if (from->seq >= since) out.raw(event_to_json(*from));
  }
  out.end_array();
}

void write_nodes(JsonOut& out, const JobView& view, const RowVersions::Changes& changes) {
  const JobState& state = view.state;
  std::unordered_set<const NodeState*> changed;
  for (size_t i : changes.nodes)
    changed.insert(&state.nodes[i]);
  for (const NodeRow& row : node_rows(view)) {
    if (changes.all_nodes || changed.contains(row.node)) write_node(out, view, row);
  }
}

}  // namespace

std::string state_message(const JobView& view, int64_t seq, const std::deque<Event>& events) {
  RowVersions::Changes all;
  all.job = all.all_nodes = true;
  const std::vector<AttemptState>& attempts = view.state.attempts;
  size_t i = attempts.size() - std::min(attempts.size(), EventHub::kMaxAttempts);
  for (; i < attempts.size(); ++i)
    all.attempts.push_back(i);
  if (!attempts.empty()) {
    for (size_t rank = 0; rank < attempts.back().ranks.size(); ++rank)
      all.ranks.emplace_back(attempts.size() - 1, rank);
  }
  return change_message(view, seq, all, events, 0);
}

std::string change_message(const JobView& view, int64_t seq, const RowVersions::Changes& changes,
                           const std::deque<Event>& events, int64_t since) {
  std::string text;
  JsonOut out(text);
  out.begin_object();
  out.field("seq", seq);
  if (changes.job) {
    out.key("job");
    write_job(out, view);
  }
  out.key("nodes");
  out.begin_array();
  if (changes.all_nodes || !changes.nodes.empty()) write_nodes(out, view, changes);
  out.end_array();
  out.key("attempts");
  out.begin_array();
  for (size_t i : changes.attempts)
    write_attempt(out, view, view.state.attempts[i]);
  out.end_array();
  out.key("ranks");
  out.begin_array();
  for (const auto& [attempt, rank] : changes.ranks) {
    const AttemptState& in = view.state.attempts[attempt];
    write_rank(out, view, in, in.ranks[rank]);
  }
  out.end_array();
  write_events(out, events, since);
  out.end_object();
  return text;
}

std::string samples_message(const std::vector<const RankSample*>& samples) {
  std::string text;
  JsonOut out(text);
  out.begin_object();
  out.key("samples");
  out.begin_array();
  for (const RankSample* sample : samples)
    write_sample(out, *sample);
  out.end_array();
  out.end_object();
  return text;
}

}  // namespace muster
