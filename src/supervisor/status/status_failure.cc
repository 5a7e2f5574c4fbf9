// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/status_failure.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/cli/ranges.h"
#include "supervisor/diagnosis/kinds.h"
#include "supervisor/diagnosis/wait_status.h"
#include "supervisor/status/collective_view.h"
#include "supervisor/status/failure_rows.h"

namespace muster {

namespace {

struct Writer {
  JsonOut& out;
  const JobState& state;
  const StatusLimits& limits;

  void text(const char* name, std::string_view what, size_t max) {
    out.field(name, short_text(what, max));
  }

  void failure();
  void failure_body(const event::FailureFound& cause);
  void evidence(const event::FailureFound& cause);
  void excerpt(const event::FailureFound& cause);
  void other_failures(const AttemptState& attempt);
  void victims(const AttemptState& attempt);
  void earlier(const AttemptState& shown);
  void operations(const AttemptState& shown);
};

// The current attempt's, or, while another one runs after a restart, the last one's.
void Writer::failure() {
  const AttemptState* shown = nullptr;
  const bool succeeded = state.end && state.end->outcome == Outcome::kSucceeded;
  for (size_t i = state.attempts.size(); i-- > 0 && shown == nullptr && !succeeded;) {
    if (state.attempts[i].root_cause) shown = &state.attempts[i];
  }
  out.key("failure");
  if (shown == nullptr) {
    out.null();
  } else {
    out.begin_object();
    failure_body(*shown->root_cause);
    other_failures(*shown);
    victims(*shown);
    earlier(*shown);
    operations(*shown);
    write_status_saved(out, shown, limits);
    out.end_object();
  }
}

void Writer::failure_body(const event::FailureFound& cause) {
  const FailureKind& kind = failure_kind(cause.kind);
  text("message", cause.message, limits.text);
  out.field("reason", kind.reason);
  out.field("hint", kind.hint);
  out.field("kind", cause.kind);
  out.field("attempt", cause.attempt);
  out.field("rank", cause.rank);
  out.field("local_rank", cause.local_rank);
  out.field("node", cause.node);
  text("host", cause.host.empty() ? state.job.host : cause.host, limits.name);
  out.field("pid", cause.pid > 0 ? std::optional(cause.pid) : std::nullopt);
  out.field("exit_code", cause.exit_code);
  out.key("signal");
  cause.signal == 0 ? out.null() : out.value(signal_name(cause.signal));
  out.field("time_us", cause.time_us > 0 ? std::optional(cause.time_us) : std::nullopt);
  out.field("ran_s", cause.ran_us >= 0 ? std::optional(tenths(cause.ran_us)) : std::nullopt);
  out.field("can_heal", cause.can_heal);
  text("line", cause.line, limits.text);
  text("line_source", cause.line_source, limits.name);
  evidence(cause);
  text("note", cause.note, limits.text);
  out.field("victim", cause.victim);
  out.field("blames", cut_ranges(cause.blames, limits.ranges));
  excerpt(cause);
  text("stderr_log", cause.stderr_log, limits.path);
  text("stdout_log", cause.stdout_log, limits.path);
}

void Writer::evidence(const event::FailureFound& cause) {
  out.key("evidence");
  out.begin_array();
  for (size_t i = 0; i < std::min(cause.evidence.size(), limits.evidence_lines); ++i)
    out.value(short_text(cause.evidence[i], limits.text));
  out.end_array();
}

// The end of it, where what matters is.
void Writer::excerpt(const event::FailureFound& cause) {
  std::vector<std::string> lines;
  size_t bytes = 0;
  for (size_t i = cause.excerpt.size(); i-- > 0;) {
    std::string line = short_text(cause.excerpt[i], limits.text);
    bytes += line.size();
    if (lines.size() == limits.excerpt_lines || bytes > limits.excerpt) break;
    lines.push_back(std::move(line));
  }
  text("excerpt_source", cause.excerpt_source, limits.name);
  out.field("excerpt_left_out", cause.excerpt.size() - lines.size());
  out.key("excerpt");
  out.begin_array();
  for (size_t i = lines.size(); i-- > 0;)
    out.value(lines[i]);
  out.end_array();
}

void Writer::other_failures(const AttemptState& attempt) {
  const std::vector<event::FailureFound>& others = attempt.other_causes;
  out.field("other_failures_count", others.size());
  out.key("other_failures");
  out.begin_array();
  for (size_t i = 0; i < std::min(others.size(), limits.other_failures); ++i) {
    out.begin_row();
    out.field("rank", others[i].rank);
    text("host", others[i].host, limits.name);
    out.field("kind", others[i].kind);
    text("message", others[i].message, limits.text / 2);
    out.field("victim", others[i].victim);
    out.field("blames", cut_ranges(others[i].blames, limits.ranges / 2));
    out.end_object();
  }
  out.end_array();
}

void Writer::victims(const AttemptState& attempt) {
  const std::vector<event::VictimGroup> groups = victim_groups(attempt);
  out.key("victims");
  out.begin_array();
  for (size_t i = 0; i < std::min(groups.size(), limits.victims); ++i) {
    out.begin_row();
    out.field("ranks", cut_ranges(groups[i].ranks, limits.ranges));
    text("reason", groups[i].reason, limits.text / 2);
    out.end_object();
  }
  out.end_array();
}

void Writer::earlier(const AttemptState& shown) {
  out.key("earlier_failures");
  out.begin_array();
  size_t left = limits.other_failures;
  for (size_t i = state.attempts.size(); i-- > 0 && left > 0;) {
    const AttemptState& attempt = state.attempts[i];
    if (!attempt.root_cause || attempt.attempt >= shown.attempt) continue;
    --left;
    out.begin_row();
    out.field("attempt", attempt.attempt);
    out.field("rank", attempt.root_cause->rank);
    out.field("kind", attempt.root_cause->kind);
    text("message", attempt.root_cause->message, limits.text / 2);
    out.end_object();
  }
  out.end_array();
}

// What its workers were doing when it was ended.
void Writer::operations(const AttemptState& shown) {
  out.key("collectives");
  out.begin_array();
  for (size_t i = 0; shown.collectives && i < shown.collectives->found.size(); ++i) {
    if (i == limits.other_failures) break;
    write_collective(out, shown.collectives->found[i], limits.text, limits.ranges);
  }
  out.end_array();
}

}  // namespace

void write_status_failure(JsonOut& out, const JobView& view, const StatusLimits& limits) {
  Writer{out, view.state, limits}.failure();
}

// The newest first.
void write_status_saved(JsonOut& out, const AttemptState* attempt, const StatusLimits& limits) {
  const size_t count = attempt ? attempt->saved.size() : 0;
  out.key("saved");
  out.begin_array();
  for (size_t i = count; i-- > 0 && count - i <= limits.saved;) {
    const event::EvidenceSaved& saved = attempt->saved[i];
    out.begin_object();
    out.field("host", short_text(saved.host, limits.name));
    out.field("why", short_text(saved.why, limits.text / 2));
    out.field("folder", short_text(saved.folder, limits.path));
    out.key("groups");
    out.begin_array();
    for (size_t g = 0; g < std::min(saved.groups.size(), limits.saved_groups); ++g)
      out.value(short_text(saved.groups[g], limits.text));
    out.end_array();
    out.field("trouble", short_text(saved.trouble, limits.text));
    out.end_object();
  }
  out.end_array();
  out.field("saved_left_out", count - std::min(count, limits.saved));
}

}  // namespace muster
