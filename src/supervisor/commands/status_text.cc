// SPDX-License-Identifier: Apache-2.0
#include "supervisor/commands/status_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <initializer_list>
#include <iterator>

#include "supervisor/commands/json_get.h"
#include "supervisor/commands/rank_rows.h"
#include "supervisor/commands/text_fields.h"
#include "supervisor/diagnosis/text_lines.h"
#include "supervisor/job/duration_text.h"

namespace muster {

namespace {

using Json = nlohmann::json;

std::string text_of(const Json& json, const char* key) {
  return clean_line(json_text(json, key));
}

std::string duration_of(const Json& json, const char* key) {
  const int64_t us = json_microseconds(json, key);
  return us < 0 ? "" : duration_text(us);
}

// Joins what there is.
std::string dotted(std::initializer_list<std::string> parts) {
  std::string out;
  for (const std::string& part : parts) {
    if (!part.empty()) out += (out.empty() ? "" : " · ") + part;
  }
  return out;
}

std::string counted(int64_t count, const char* one) {
  return std::to_string(count) + " " + one + (count == 1 ? "" : "s");
}

// "rank 3", "ranks 0-2,5".
std::string ranks_text(const std::string& ranks) {
  return (ranks.find_first_of(",-") == std::string::npos ? "rank " : "ranks ") + ranks;
}

struct Writer {
  const Json& status;
  const StatusStyle& style;
  TextFields out{style.colour};

  // What the job is in, in one word.
  std::string condition() const {
    const std::string phase = text_of(status, "phase");
    std::string outcome = text_of(status, "outcome");
    if (!outcome.empty()) return outcome;
    return phase == "ended" || !json_get(status, "live", true) ? "killed" : phase;
  }

  bool stalled() const { return json_part(status, "stall").is_object(); }

  static Paint paint_of(const std::string& condition) {
    if (condition == "running" || condition == "succeeded") return Paint::kGood;
    if (condition == "failed" || condition == "killed" || condition == "stalled")
      return Paint::kBad;
    return Paint::kBusy;
  }

  void head(StatusText& text) {
    const std::string condition = this->condition();
    std::string word = condition;
    std::transform(word.begin(), word.end(), word.begin(), ::toupper);
    const bool over = text_of(status, "phase") == "ended";
    const std::string elapsed = duration_of(status, "elapsed_s");
    const Json& stall = json_part(status, "stall");
    const std::string lasted = stalled() ? duration_of(stall, "lasted_s") : elapsed;
    const std::string what = text_of(stalled() ? stall : status, stalled() ? "text" : "summary");
    const std::string rest =
        (lasted.empty() ? "" : (over ? " after " : " for ") + lasted) + " · " + what;
    text.headline = word + rest;
    text.change = condition + " " + what;
    text.over = over;
    text.bad = paint_of(condition) == Paint::kBad || condition == "stopped";
    out.line(out.painted(word, paint_of(condition)) + rest);
    const Json& restarts = json_part(status, "restarts");
    const int64_t most = json_get(restarts, "max", int64_t{0});
    const int64_t attempt = json_get(status, "attempt", int64_t{-1});
    const int64_t world = json_get(status, "world_size", int64_t{0});
    const int64_t nodes = json_get(status, "node_count", int64_t{1});
    out.line(out.painted(dotted({"run " + text_of(status, "run_id"), text_of(status, "program"),
                                 world > 0 ? counted(world, "rank") : "",
                                 nodes > 1 ? counted(nodes, "node") : text_of(status, "host"),
                                 stalled() && !elapsed.empty() ? "runs for " + elapsed : "",
                                 attempt > 0 ? "attempt " + std::to_string(attempt) : "",
                                 most > 0 ? std::to_string(json_get(restarts, "used", int64_t{0})) +
                                                " of " + counted(most, "restart") + " used"
                                          : ""}),
                         Paint::kFaint));
  }

  void failure() {
    const Json& failure = json_part(status, "failure");
    if (!failure.is_object()) return;
    out.gap();
    const int64_t rank = json_get(failure, "rank", int64_t{-1});
    const int64_t pid = json_get(failure, "pid", int64_t{0});
    std::string who = rank < 0 ? text_of(failure, "host")
                               : "rank " + std::to_string(rank) + " on " + text_of(failure, "host");
    if (pid > 0) who += " (pid " + std::to_string(pid) + ")";
    const std::string ran = duration_of(failure, "ran_s");
    out.field("failure", text_of(failure, "message"), Paint::kBad);
    out.field("who", dotted({who, "attempt " + std::to_string(json_get(failure, "attempt", 0)),
                             ran.empty() ? "" : "after " + ran}));
    out.field("reason", text_of(failure, "reason"));
    out.field("hint", text_of(failure, "hint"), Paint::kBold);
    shown_by(failure);
    lines("evidence", json_part(failure, "evidence"));
    blamed(failure);
    out.field("note", text_of(failure, "note"));
    operations(failure);
    excerpt(failure);
    // Those of the attempt that runs are told above.
    if (json_get(failure, "attempt", 0) != json_get(status, "attempt", 0)) saved(failure);
    out.field("log", text_of(failure, "stderr_log"));
    if (text_of(failure, "stderr_log").empty()) out.field("log", text_of(failure, "stdout_log"));
    others(failure);
  }

  // The line that proves it, unless it is told with the last lines.
  void shown_by(const Json& failure) {
    const std::string line = text_of(failure, "line");
    const std::string source = text_of(failure, "line_source");
    for (const Json& of_excerpt : json_part(failure, "excerpt")) {
      if (of_excerpt.is_string() && clean_line(of_excerpt.get<std::string>()) == line) return;
    }
    if (!line.empty())
      out.field("line", source.empty() ? line : source + ": " + line, Paint::kBold);
  }

  void lines(std::string label, const Json& texts) {
    for (const Json& text : texts) {
      if (!text.is_string()) continue;
      out.field(label, clean_line(text.get<std::string>()));
      label.clear();
    }
  }

  void blamed(const Json& failure) {
    if (!json_get(failure, "victim", false)) return;
    const std::string blames = text_of(failure, "blames");
    out.field("victim", blames.empty() ? "of another's failure; it does not tell whose"
                                       : "of " + ranks_text(blames) + ", whom it names");
  }

  // Who differs in a job that makes no progress.
  void stall() {
    if (!stalled()) return;
    const Json& stall = json_part(status, "stall");
    const std::string suspects = text_of(stall, "suspects");
    const std::string waiting = text_of(stall, "waiting");
    out.gap();
    out.field("stalled", text_of(stall, "text"), Paint::kBad);
    if (!suspects.empty()) out.field("look at", ranks_text(suspects), Paint::kBold);
    out.field("hint", text_of(stall, "hint"));
    if (!waiting.empty()) out.field("waiting", ranks_text(waiting));
  }

  void past_stalls() {
    std::string label = "stalled";
    for (const Json& past : json_part(status, "past_stalls")) {
      const std::string lasted = duration_of(past, "lasted_s");
      out.field(label, dotted({"before" + (lasted.empty() ? "" : ", for " + lasted),
                               text_of(past, "text"), text_of(past, "how")}));
      label.clear();
    }
  }

  // Where stacks of running workers lie, and which are alike.
  void saved(const Json& of) {
    for (const Json& one : json_part(of, "saved")) {
      out.field("stacks", dotted({text_of(one, "folder") + " on " + text_of(one, "host"),
                                  text_of(one, "why"), text_of(one, "trouble")}));
      lines("", json_part(one, "groups"));
    }
    const int64_t more = json_get(of, "saved_left_out", int64_t{0});
    if (more > 0) out.field("", "and in " + counted(more, "more folder"), Paint::kFaint);
  }

  // What the workers were doing, the cause first.
  void operations(const Json& failure) {
    std::string label = "operations";
    for (const Json& one : json_part(failure, "collectives")) {
      out.field(label, text_of(one, "text"));
      label.clear();
    }
  }

  void excerpt(const Json& failure) {
    std::string label = text_of(failure, "excerpt_source");
    const int64_t left_out = json_get(failure, "excerpt_left_out", int64_t{0});
    if (left_out > 0) {
      out.field(label, "... " + counted(left_out, "line") + " before ...", Paint::kFaint);
      label.clear();
    }
    for (const Json& line : json_part(failure, "excerpt")) {
      if (!line.is_string()) continue;
      const std::string text = clean_line(line.get<std::string>());
      out.field(label, text.empty() ? " " : text);
      label.clear();
    }
  }

  void others(const Json& failure) {
    std::string label = "also";
    for (const Json& other : json_part(failure, "other_failures")) {
      out.field(label, "rank " + std::to_string(json_get(other, "rank", -1)) + " on " +
                           text_of(other, "host") + ": " + text_of(other, "message"));
      label.clear();
    }
    label = "victims";
    for (const Json& group : json_part(failure, "victims")) {
      const std::string ranks = text_of(group, "ranks");
      out.field(label, ranks_text(ranks) + ": " + text_of(group, "reason"));
      label.clear();
    }
    label = "earlier";
    for (const Json& earlier : json_part(failure, "earlier_failures")) {
      const int64_t rank = json_get(earlier, "rank", int64_t{-1});
      out.field(label, dotted({"attempt " + std::to_string(json_get(earlier, "attempt", 0)),
                               rank < 0 ? "" : "rank " + std::to_string(rank),
                               text_of(earlier, "message")}));
      label.clear();
    }
  }

  void waiting() {
    const Json& waiting = json_part(status, "waiting");
    if (!waiting.is_object()) return;
    out.gap();
    out.field("waiting", text_of(waiting, "text"), Paint::kBusy);
    std::string hosts;
    for (const Json& host : json_part(waiting, "hosts")) {
      if (host.is_string())
        hosts += (hosts.empty() ? "" : ", ") + clean_line(host.get<std::string>());
    }
    const int64_t have = json_get(waiting, "have", int64_t{0});
    const int64_t missing = json_get(waiting, "min", int64_t{0}) - have;
    out.field("here", hosts);
    if (missing > 0) out.field("missing", counted(missing, "node"));
    out.field("time left", duration_of(waiting, "left_s"));
  }

  void attention() {
    std::string label = "attention";
    for (const Json& line : json_part(status, "attention")) {
      if (!line.is_string()) continue;
      const std::string text = clean_line(line.get<std::string>());
      if (stalled() && text == text_of(json_part(status, "stall"), "text")) continue;
      if (label == "attention") out.gap();
      out.field(label, text, Paint::kBusy);
      label.clear();
    }
    out.field("stopped by", text_of(status, "stop"));
  }

  void nodes() {
    std::string label = "lost";
    for (const Json& node : json_part(status, "nodes")) {
      const std::string lost = text_of(node, "lost");
      if (lost.empty()) continue;
      out.field(label, text_of(node, "host") + ": " + lost);
      label.clear();
    }
  }

  void store() {
    std::string label = "store";
    for (const Json& group : json_part(json_part(status, "store"), "waits")) {
      if (label == "store") out.gap();
      std::string keys;
      for (const Json& key : json_part(group, "keys")) {
        if (key.is_string())
          keys += (keys.empty() ? "" : ", ") + clean_line(key.get<std::string>());
      }
      const auto shown = json_part(group, "keys").size();
      const auto all = json_get(group, "key_count", static_cast<int64_t>(shown));
      if (all > static_cast<int64_t>(shown)) keys += ", ... (" + std::to_string(all) + " keys)";
      const std::string ranks = text_of(group, "ranks");
      const int64_t waiters = json_get(group, "waiters", int64_t{0});
      const std::string who = ranks.empty() ? counted(waiters, "client") : ranks_text(ranks);
      out.field(label, who + (waiters == 1 ? " waits " : " wait ") +
                           duration_of(group, "longest_s") + " for " + keys);
      label.clear();
    }
    const std::string others = text_of(json_part(status, "store"), "other_ranks");
    if (label.empty() && !others.empty()) out.field("", "not waiting: ranks " + others);
  }

  void progress() {
    const Json& progress = json_part(status, "progress");
    if (!progress.is_object()) return;
    const int64_t steps = json_get(progress, "steps", int64_t{-1});
    std::string step = "step " + std::to_string(json_get(progress, "step", int64_t{0}));
    if (steps >= 0) step += " of " + std::to_string(steps);
    const double speed = json_get(progress, "steps_per_s", -1.0);
    const double loss = json_get(progress, "loss", std::nan(""));
    const std::string left = duration_of(progress, "left_s");
    const int64_t first = json_get(progress, "first_step", int64_t{-1});
    std::string spread;
    if (first >= 0) {
      spread = "rank " + std::to_string(json_get(progress, "last_rank", 0)) + " is last, rank " +
               std::to_string(json_get(progress, "first_rank", 0)) + " is at " +
               std::to_string(first);
    }
    out.gap();
    out.field("progress", dotted({step, speed < 0 ? "" : number_text(speed) + " steps/s",
                                  std::isnan(loss) ? "" : "loss " + number_text(loss),
                                  left.empty() ? "" : left + " left", spread}));
  }

  void ranks() {
    const Json& groups = json_part(status, "groups");
    const Json& ranks = json_part(status, "ranks");
    if (groups.empty() && ranks.empty()) return;
    out.gap();
    if (!groups.empty()) write_groups(out, groups);
    if (ranks.empty()) return;
    if (!groups.empty()) out.gap();
    const RankStyle rows{json_get(status, "live", true), stalled()};
    if (style.each_rank || !groups.empty()) {
      write_ranks(out, ranks, rows);
    } else {
      write_folded(out, ranks, rows);
    }
  }
};

}  // namespace

std::string size_text(int64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KB", "MB", "GB", "TB", "PB"};
  double size = static_cast<double>(bytes);
  size_t unit = 0;
  while (size >= 1024 && unit + 1 < std::size(kUnits)) {
    size /= 1024;
    ++unit;
  }
  char text[40];
  std::snprintf(text, sizeof text, unit == 0 || size >= 99.95 ? "%.0f %s" : "%.1f %s", size,
                kUnits[unit]);
  return text;
}

Result<StatusText> status_text(std::string_view json, const StatusStyle& style) {
  const Json status = Json::parse(json, nullptr, false);
  if (!status.is_object() || !status.contains("phase")) {
    return Error{0, "the answer is not that of a muster"};
  }
  StatusText text;
  Writer writer{status, style};
  writer.head(text);
  writer.stall();
  if (!json_part(status, "saved").empty()) writer.out.gap();
  writer.saved(status);
  writer.failure();
  writer.past_stalls();
  writer.waiting();
  writer.attention();
  writer.nodes();
  writer.store();
  writer.progress();
  writer.ranks();
  const std::string folder = text_of(status, "log_dir");
  if (!folder.empty()) {
    writer.out.gap();
    writer.out.field("logs", folder);
  }
  text.lines = writer.out.take();
  return text;
}

}  // namespace muster
