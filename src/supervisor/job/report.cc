// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/report.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "supervisor/cli/shell_quoted.h"
#include "supervisor/diagnosis/diagnose.h"
#include "supervisor/diagnosis/text_lines.h"
#include "supervisor/diagnosis/wait_status.h"
#include "supervisor/job/duration_text.h"
#include "supervisor/job/rank_ranges.h"

namespace muster {

namespace {

constexpr size_t kLabelWidth = 13;
constexpr size_t kMaxColumns = 200;  // of a line; paths are never cut
constexpr size_t kMaxListed = 3;     // other causes, earlier attempts, leftovers one by one
constexpr size_t kMaxTroubles = 2;
constexpr size_t kMaxEvidence = 4;  // lines of it

using Lines = std::vector<std::string>;

void add_field(Lines& lines, std::string label, const std::string& text) {
  label.resize(std::max(label.size(), kLabelWidth), ' ');
  lines.push_back(cut_line("  " + label + text, kMaxColumns));
}

void add_path(Lines& lines, std::string label, const std::string& path) {
  if (path.empty()) return;
  label.resize(std::max(label.size(), kLabelWidth), ' ');
  lines.push_back("  " + label + valid_utf8(path));
}

// The host of a failure; those of older files happened where the file was written.
std::string host_of(const JobState& state, const event::FailureFound& failure) {
  return clean_line(failure.host.empty() ? state.job.host : failure.host);
}

bool never_started(const event::FailureFound& failure) {
  return failure.kind.starts_with("exec_") || failure.kind == "spawn_failed";
}

std::string failure_headline(const JobState& state, const event::FailureFound& root) {
  if (root.rank < 0) return host_of(state, root) + " failed · " + root.message;
  std::string text = "rank " + std::to_string(root.rank) + " (local " +
                     std::to_string(root.local_rank) + ") on " + host_of(state, root);
  if (never_started(root)) return text + " could not be started · " + root.message;
  text += " failed";
  if (root.ran_us >= 0) text += " after " + duration_text(root.ran_us);
  return text + " · " + root.message;
}

std::string headline(const JobState& state, const AttemptState* attempt) {
  bool stopped = state.end && state.end->outcome == Outcome::kStopped;
  if (stopped && state.stop_signal) {
    return "stopped after " + duration_text(state.last_us) + " by " +
           describe_signal(*state.stop_signal);
  }
  std::string text =
      std::string(stopped ? "stopped" : "failed") + " after " + duration_text(state.last_us);
  if (stopped && state.stop_order) return text + " · " + clean_line(state.stop_order->why);
  if (state.end && !state.end->why.empty()) return text + " · " + clean_line(state.end->why);
  if (attempt && attempt->root_cause) return failure_headline(state, *attempt->root_cause);
  if (!state.troubles.empty()) {
    const event::Trouble& last = state.troubles.back();
    text += " · " + last.subject + ": " + clean_line(last.message);
  }
  return text;
}

// "ranks 0-2: text; rank 3: other text" out of one text for each rank.
std::string group_by_text(const std::vector<std::pair<int, std::string>>& texts, bool bracket) {
  std::vector<std::pair<std::string, std::vector<int>>> groups;
  for (const auto& [rank, text] : texts) {
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&text = text](const auto& g) { return g.first == text; });
    if (group == groups.end()) group = groups.insert(groups.end(), {text, {}});
    group->second.push_back(rank);
  }
  std::string line;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (i > 0) line += "; ";
    line += rank_ranges(groups[i].second);
    line += bracket ? " (" + groups[i].first + ")" : " " + groups[i].first;
  }
  return line;
}

void add_root(Lines& lines, const JobState& state, const AttemptState& attempt) {
  const event::FailureFound& root = *attempt.root_cause;
  std::string text =
      root.rank < 0 ? "node " + std::to_string(root.node) : "rank " + std::to_string(root.rank);
  if (root.pid != 0) text += " pid " + std::to_string(root.pid);
  if (attempt.node_count > 1) text += " on " + host_of(state, root);
  text += " attempt " + std::to_string(root.attempt);
  if (root.time_us > 0) {
    std::chrono::system_clock::time_point time{std::chrono::microseconds(root.time_us)};
    text += " " + utc_text(time, 3);
  }
  text += " · " + root.kind;
  const bool in_headline =
      state.end && state.end->outcome == Outcome::kFailed && state.end->why.empty();
  if (!in_headline) text += ": " + root.message;
  add_field(lines, "root cause", text);
}

// The line that shows it, unless the reader sees it anyway, and what else was found.
void add_evidence(Lines& lines, const event::FailureFound& root) {
  const bool in_sight = root.message.find(root.line) != std::string::npos ||
                        (!root.excerpt.empty() && root.excerpt.back() == root.line);
  if (!root.line.empty() && !in_sight) {
    const std::string source = root.line_source.empty() ? "" : root.line_source + ": ";
    add_field(lines, "shown by", source + clean_line(root.line));
  }
  const auto heading = std::find(root.evidence.begin(), root.evidence.end(), kLastLinesHeading);
  const Lines found(root.evidence.begin(), heading);
  for (size_t i = 0; i < std::min(found.size(), kMaxEvidence); ++i)
    add_field(lines, i == 0 ? "evidence" : "", clean_line(found[i]));
  if (found.size() > kMaxEvidence) {
    const size_t more = found.size() - kMaxEvidence;
    add_field(lines, "", "and " + std::to_string(more) + " more in summary.json");
  }
  // Where a line shows it they say little more. Of an exit code it is but the last one of stderr.
  if (!root.line.empty() && root.kind != "exit_code") return;
  for (auto line = heading; line != root.evidence.end(); ++line)
    add_field(lines, line == heading && found.empty() ? "evidence" : "", clean_line(*line));
}

void add_excerpt(Lines& lines, const event::FailureFound& root, size_t room) {
  Lines excerpt = root.excerpt;
  if (excerpt.empty() || room == 0) return;
  bool traceback = excerpt.front().find("(most recent call last)") != std::string::npos;
  if (excerpt.size() > room) {
    size_t at = traceback && room > 3 ? 1 : 0;  // a traceback's header stays
    size_t surplus = excerpt.size() - room;
    auto from = excerpt.begin() + static_cast<std::ptrdiff_t>(at);
    excerpt.erase(from, from + static_cast<std::ptrdiff_t>(surplus));
    if (at == 1) excerpt[at] = "  ... " + std::to_string(surplus + 1) + " lines left out ...";
  }
  std::string label = traceback || root.kind.starts_with("python_") ? "traceback" : "last output";
  if (root.excerpt_source == "stacks") label = "stacks";
  for (const std::string& line : excerpt) {
    add_field(lines, label, line);
    label.clear();
  }
}

std::string other_text(const AttemptState& attempt, const event::FailureFound& other) {
  if (other.rank < 0) return "node " + std::to_string(other.node) + " · " + other.message;
  std::string text = "rank " + std::to_string(other.rank);
  if (other.pid != 0) text += " pid " + std::to_string(other.pid);
  if (attempt.node_count > 1) text += " on " + clean_line(other.host);
  return text + " · " + other.message;
}

// Independent ones; who only fell with them is among the victims.
void add_other_causes(Lines& lines, const AttemptState& attempt) {
  size_t listed = 0;
  std::vector<int> rest;
  for (const event::FailureFound& other : attempt.other_causes) {
    if (other.victim) continue;
    if (listed == kMaxListed) {
      rest.push_back(other.rank);
    } else {
      add_field(lines, listed++ == 0 ? "also failed" : "", other_text(attempt, other));
    }
  }
  if (!rest.empty()) add_field(lines, "", "and " + rank_ranges(rest));
}

// What the workers were doing when they were stopped, the cause first.
void add_operations(Lines& lines, const AttemptState& attempt) {
  if (!attempt.collectives) return;
  const std::vector<event::CollectiveFinding>& found = attempt.collectives->found;
  for (size_t i = 0; i < std::min(found.size(), kMaxListed); ++i) {
    std::string label = i == 0 ? "operations" : "";
    label.resize(std::max(label.size(), kLabelWidth), ' ');
    lines.push_back(cut_line("  " + label + clean_line(found[i].text), 2 * kMaxColumns));
  }
}

// Of several nodes: what the coordinator told, the same on all of them.
void add_victim_groups(Lines& lines, const AttemptState& attempt) {
  std::string text;
  for (const event::VictimGroup& group : attempt.victims) {
    if (!text.empty()) text += "; ";
    const bool one = group.ranks.find_first_of("-,") == std::string::npos;
    text += one ? "rank " : "ranks ";
    for (char c : clean_line(group.ranks))
      text += c == ',' ? ", " : std::string(1, c);
    text += " (" + clean_line(group.reason) + ")";
  }
  if (!text.empty()) add_field(lines, "victims", text);
}

void add_victims(Lines& lines, const JobState& state, const AttemptState& attempt) {
  std::vector<std::pair<int, std::string>> texts;
  std::vector<int> pending;
  bool stopped = state.end && state.end->outcome == Outcome::kStopped;
  const bool told = attempt.node_count > 1 || !attempt.victims.empty();
  if (told && !stopped) {
    add_victim_groups(lines, attempt);
    if (attempt.node_count > 1) return;
  }
  for (const RankState& rank : attempt.ranks) {
    if (rank.phase == RankPhase::kPending) pending.push_back(rank.rank);
    if (stopped && rank.phase == RankPhase::kExited) {
      texts.emplace_back(rank.rank, describe_end(decode_wait_status(rank.wait_status)));
    }
  }
  if (stopped) {
    if (!texts.empty()) add_field(lines, "workers", group_by_text(texts, false));
  } else if (!told) {
    for (const RankState* rank : ranks_stopped_by_us(attempt)) {
      texts.emplace_back(rank->rank, victim_reason(*rank));
    }
    if (!texts.empty()) add_field(lines, "victims", group_by_text(texts, true));
  }
  if (!pending.empty()) add_field(lines, "not started", rank_ranges(pending));
}

void add_restarts(Lines& lines, const JobState& state, const AttemptState* attempt) {
  std::string text = std::to_string(state.restarts_used) + " of " +
                     std::to_string(state.job.max_restarts) + " used";
  if (attempt && !attempt->no_restart.empty()) text += " · " + clean_line(attempt->no_restart);
  add_field(lines, "restarts", text);
  size_t earlier = state.attempts.empty() ? 0 : state.attempts.size() - 1;
  size_t first = earlier > kMaxListed ? earlier - kMaxListed : 0;
  for (size_t i = first; i < earlier; ++i) {
    const auto& root = state.attempts[i].root_cause;
    if (!root) continue;
    std::string text = root->rank < 0 ? "" : "rank " + std::to_string(root->rank) + " · ";
    add_field(lines, "  attempt " + std::to_string(root->attempt), text + root->message);
  }
}

void add_paths(Lines& lines, const JobState& state, const AttemptState* attempt,
               const LogPath& log_path) {
  if (attempt && attempt->root_cause) {
    const event::FailureFound& root = *attempt->root_cause;
    // A path of another node is written as scp takes it.
    const bool elsewhere = attempt->node_count > 1 && root.node != attempt->node;
    auto path = [&](Stream stream) {
      if (root.rank < 0) return std::string();
      std::string known = stream == Stream::kStderr ? root.stderr_log : root.stdout_log;
      if (elsewhere) return known.empty() ? known : root.host + ":" + known;
      return known.empty() && log_path ? log_path(root.attempt, root.local_rank, stream) : known;
    };
    std::string err = path(Stream::kStderr);
    std::string out = path(Stream::kStdout);
    add_path(lines, "logs", err);
    if (out != err) add_path(lines, err.empty() ? "logs" : "", out);
  }
  add_path(lines, "run folder", state.job.log_dir);
  const bool failed = state.end && state.end->outcome == Outcome::kFailed;
  if (failed && !state.job.log_dir.empty()) {
    add_path(lines, "page", "muster view " + shell_quoted(state.job.log_dir));
  }
}

std::string success_headline(const JobState& state) {
  const AttemptState* attempt = state.current();
  const bool several = attempt != nullptr && attempt->node_count > 1;
  const int count = several ? attempt->world_size : state.job.local_world_size;
  std::string line = std::to_string(count) + (count == 1 ? " worker" : " workers");
  if (several) line += " on " + std::to_string(attempt->node_count) + " nodes";
  if (attempt == nullptr) line = "this spare node was not needed; the job";
  line += " finished in " + duration_text(state.last_us);
  if (state.restarts_used == 1) line += " · after 1 restart";
  if (state.restarts_used > 1) {
    line += " · after " + std::to_string(state.restarts_used) + " restarts";
  }
  return line;
}

Lines success_report(const JobState& state) {
  std::string line = "muster: " + success_headline(state);
  if (!state.job.log_dir.empty()) line += " · logs " + valid_utf8(state.job.log_dir);
  Lines lines = {line};
  if (!state.leftovers.empty())
    lines.push_back(cut_line("  " + leftovers_line(state), kMaxColumns));
  return lines;
}

}  // namespace

std::string describe_signal(const event::SignalReceived& received) {
  std::string text = signal_name(received.signal);
  if (!received.host.empty()) text += " on " + clean_line(received.host);
  if (received.sender_pid == 0) {
    if (!received.sender.empty()) return text + " from " + clean_line(received.sender);
    bool typed = received.signal == SIGINT || received.signal == SIGQUIT;
    return text + (typed || received.signal == SIGHUP ? " from the terminal" : " from the kernel");
  }
  text += " from pid " + std::to_string(received.sender_pid);
  std::string who = clean_line(received.sender);
  if (who.empty()) who = "uid " + std::to_string(received.sender_uid);
  return text + " (" + who + ")";
}

std::string victim_reason(const RankState& victim) {
  std::string text = "stopped by muster";
  if (victim.phase != RankPhase::kExited) return text + ", still there";
  WaitStatus status = decode_wait_status(victim.wait_status);
  bool as_told = status.signal != 0 && status.signal == victim.stop_signal;
  if (as_told && status.signal == SIGKILL) return text + ", which had to kill it";
  if (as_told || status.success()) return text;
  return text + ", " + describe_end(status);
}

std::string leftovers_line(const JobState& state) {
  std::string left, ended;
  size_t count_left = 0, count_ended = 0;
  for (const event::LeftoverFound& leftover : state.leftovers) {
    std::string name = clean_line(leftover.command);
    if (leftover.pid != 0) name = "pid " + std::to_string(leftover.pid) + " " + name;
    name = cut_line(name, 40);
    if (!leftover.host.empty()) name += " on " + cut_line(clean_line(leftover.host), 40);
    if (leftover.ended) {
      if (++count_ended <= kMaxListed) ended += (ended.empty() ? "" : ", ") + name;
      continue;
    }
    if (++count_left > kMaxListed) continue;
    left += (left.empty() ? "" : "; ") + name + " in state " + leftover.state;
    if (!leftover.wait_channel.empty()) left += " (" + leftover.wait_channel + ")";
    left += ": " + clean_line(leftover.fate);
  }
  if (count_left > kMaxListed) left += "; and " + std::to_string(count_left - kMaxListed) + " more";
  if (count_left > 0) return "still running: " + left;
  if (count_ended == 0) return "nothing left running";
  if (count_ended > kMaxListed) ended += ", ...";
  return "nothing left running (" + std::to_string(count_ended) +
         (count_ended == 1 ? " descendant" : " descendants") + " had to be ended: " + ended + ")";
}

std::string end_line(const JobState& state) {
  const bool succeeded = state.end && state.end->outcome == Outcome::kSucceeded;
  return cut_line(succeeded ? success_headline(state) : headline(state, state.current()),
                  2 * kMaxColumns);
}

std::vector<std::string> final_report(const JobState& state, const LogPath& log_path) {
  if (state.end && state.end->outcome == Outcome::kSucceeded) return success_report(state);
  const AttemptState* attempt = state.current();
  const event::FailureFound* root =
      attempt && attempt->root_cause ? &*attempt->root_cause : nullptr;
  Lines lines = {"muster: " + end_line(state)};
  if (root) add_root(lines, state, *attempt);

  Lines rest;
  if (root) add_evidence(rest, *root);
  if (root && !root->note.empty()) add_field(rest, "note", root->note);
  if (attempt) {
    add_operations(rest, *attempt);
    add_other_causes(rest, *attempt);
    add_victims(rest, state, *attempt);
  }
  add_restarts(rest, state, attempt);
  size_t troubles = state.troubles.size();
  for (size_t i = troubles > kMaxTroubles ? troubles - kMaxTroubles : 0; i < troubles; ++i) {
    add_field(rest, "trouble",
              state.troubles[i].subject + ": " + clean_line(state.troubles[i].message));
  }
  add_paths(rest, state, attempt, log_path);
  rest.push_back(cut_line("  " + leftovers_line(state), kMaxColumns));

  // The excerpt gets the room that the fixed parts leave.
  size_t used = lines.size() + rest.size();
  size_t room = used < kMaxReportLines ? kMaxReportLines - used : 0;
  if (root) add_excerpt(lines, *root, room);
  lines.insert(lines.end(), rest.begin(), rest.end());
  return lines;
}

}  // namespace muster
