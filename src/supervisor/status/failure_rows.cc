// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/failure_rows.h"

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "supervisor/cli/ranges.h"
#include "supervisor/diagnosis/kinds.h"
#include "supervisor/diagnosis/stall_hint.h"
#include "supervisor/diagnosis/wait_status.h"
#include "supervisor/job/report.h"
#include "supervisor/status/collective_view.h"

namespace muster {

namespace {

constexpr size_t kMaxVictimGroups = 50;

void write_lines(JsonOut& out, const char* name, const std::vector<std::string>& lines) {
  out.key(name);
  out.begin_array();
  for (const std::string& line : lines)
    out.value(line);
  out.end_array();
}

void write_stall(JsonOut& out, const PastStall& past, bool over) {
  const event::StallFound& stall = past.found;
  out.begin_row();
  out.field("attempt", stall.attempt);
  out.field("kind", stall.kind);
  out.field("text", stall.text);
  out.field("hint", stall_hint(stall.kind));
  out.field("suspects", stall.suspects);
  out.field("waiting", stall.waiting);
  out.field("since_us", stall.since_us);
  out.field("over", over);
  out.field("lasted_us", past.lasted_us >= 0 ? std::optional(past.lasted_us) : std::nullopt);
  out.field("how", past.how);
  out.end_object();
}

}  // namespace

// One node's victims are folded here; those of several nodes the coordinator has folded. Ranks that
// ended alike share their text, which is made once.
std::vector<event::VictimGroup> victim_groups(const AttemptState& attempt) {
  if (!attempt.victims.empty()) return attempt.victims;
  if (!attempt.root_cause || attempt.node_count > 1) return {};
  std::map<std::tuple<RankPhase, int, int>, std::pair<const RankState*, std::vector<int>>> alike;
  for (const RankState* rank : ranks_stopped_by_us(attempt)) {
    auto& group = alike[{rank->phase, rank->wait_status, rank->stop_signal}];
    group.first = rank;
    group.second.push_back(rank->rank);
  }
  std::map<std::string, std::vector<int>> by_reason;
  for (auto& [key, group] : alike) {
    std::vector<int>& ranks = by_reason[victim_reason(*group.first)];
    ranks.insert(ranks.end(), group.second.begin(), group.second.end());
  }
  std::vector<event::VictimGroup> groups;
  for (auto& [reason, ranks] : by_reason) {
    if (groups.size() == kMaxVictimGroups) break;
    groups.push_back({format_ranges(std::move(ranks)), reason});
  }
  return groups;
}

void write_failure(JsonOut& out, const JobView& view, const event::FailureFound& failure) {
  const FailureKind& kind = failure_kind(failure.kind);
  const std::string log =
      "/api/v1/logs/" + std::to_string(failure.attempt) + "/" + std::to_string(failure.rank) + "/";
  auto url = [&](const std::string& path, const char* stream) {
    const bool kept = failure.rank >= 0 && !path.empty();
    return kept ? std::optional(log + stream) : std::nullopt;
  };
  out.begin_object();
  out.field("attempt", failure.attempt);
  out.field("rank", failure.rank);
  out.field("local_rank", failure.local_rank);
  out.field("node", failure.node);
  out.field("host", failure.host.empty() ? view.state.job.host : failure.host);
  out.field("pid", failure.pid > 0 ? std::optional(failure.pid) : std::nullopt);
  out.field("kind", failure.kind);
  out.field("signal",
            failure.signal != 0 ? std::optional(signal_name(failure.signal)) : std::nullopt);
  out.field("exit_code", failure.exit_code);
  out.field("message", failure.message);
  out.field("reason", kind.reason);
  out.field("hint", kind.hint);
  out.field("line", failure.line);
  out.field("line_source", failure.line_source);
  write_lines(out, "excerpt", failure.excerpt);
  out.field("excerpt_source", failure.excerpt_source);
  write_lines(out, "evidence", failure.evidence);
  out.field("note", failure.note);
  out.field("victim", failure.victim);
  out.field("blames", failure.blames);
  out.field("can_heal", failure.can_heal);
  out.field("ran_us", failure.ran_us >= 0 ? std::optional(failure.ran_us) : std::nullopt);
  out.field("time_us", failure.time_us > 0 ? std::optional(failure.time_us) : std::nullopt);
  out.field("stdout_log", failure.stdout_log);
  out.field("stderr_log", failure.stderr_log);
  out.field("stdout_url", url(failure.stdout_log, "stdout"));
  out.field("stderr_url", url(failure.stderr_log, "stderr"));
  out.end_object();
}

void write_victims(JsonOut& out, const AttemptState& attempt) {
  out.key("victims");
  out.begin_array();
  for (const event::VictimGroup& group : victim_groups(attempt)) {
    out.begin_row();
    out.field("ranks", group.ranks);
    out.field("reason", group.reason);
    out.end_object();
  }
  out.end_array();
}

void write_collectives(JsonOut& out, const AttemptState& attempt) {
  constexpr size_t kMaxText = 1024;
  out.key("collectives");
  out.begin_array();
  if (attempt.collectives) {
    for (const event::CollectiveFinding& finding : attempt.collectives->found)
      write_collective(out, finding, kMaxText, kMaxText);
  }
  out.end_array();
}

void write_stall_now(JsonOut& out, const JobView& view) {
  const event::StallFound* stall = stall_now(view);
  out.key("stall");
  stall ? write_stall(out, {*stall, -1, ""}, false) : out.null();
}

void write_stalls(JsonOut& out, const JobView& view, const AttemptState& attempt) {
  out.key("stalls");
  out.begin_array();
  for (const PastStall& past : attempt.past_stalls)
    write_stall(out, past, true);
  if (attempt.stall) {
    const bool goes_on = stall_now(view) == &*attempt.stall;
    write_stall(out, {*attempt.stall, -1, goes_on ? "" : "its attempt ended"}, !goes_on);
  }
  out.end_array();
}

void write_saved(JsonOut& out, const AttemptState& attempt) {
  out.key("saved");
  out.begin_array();
  for (const event::EvidenceSaved& saved : attempt.saved) {
    out.begin_row();
    out.field("host", saved.host);
    out.field("why", saved.why);
    out.field("folder", saved.folder);
    write_lines(out, "groups", saved.groups);
    out.field("trouble", saved.trouble);
    out.end_object();
  }
  out.end_array();
}

}  // namespace muster
