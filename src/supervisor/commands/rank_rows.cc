// SPDX-License-Identifier: Apache-2.0
#include "supervisor/commands/rank_rows.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <vector>

#include "supervisor/cli/ranges.h"
#include "supervisor/commands/json_get.h"
#include "supervisor/commands/status_text.h"
#include "supervisor/diagnosis/text_lines.h"
#include "supervisor/job/duration_text.h"

namespace muster {

namespace {

using Json = nlohmann::json;

std::string text_of(const Json& json, const char* key) {
  return clean_line(json_text(json, key));
}

std::string seconds_of(const Json& json, const char* key) {
  const int64_t us = json_microseconds(json, key);
  return us < 0 ? "" : duration_text(us);
}

std::string size_of(const Json& json, const char* key) {
  const auto bytes = json_get(json, key, int64_t{-1});
  return bytes < 0 ? "" : size_text(bytes);
}

std::string number_of(const Json& json, const char* key) {
  const double number = json_get(json, key, std::nan(""));
  return std::isnan(number) ? "" : number_text(number);
}

std::string percent_of(const Json& json, const char* key) {
  const double part = json_get(json, key, -1.0);
  return part < 0 || part > 1e6 ? "" : std::to_string(std::lround(part * 100)) + "%";
}

std::string step_of(const Json& rank) {
  const auto step = json_get(rank, "step", int64_t{-1});
  const auto steps = json_get(rank, "steps", int64_t{-1});
  if (step < 0) return "";
  return std::to_string(step) + (steps >= 0 ? "/" + std::to_string(steps) : "");
}

Paint paint_of(const std::string& state) {
  if (state == "failed" || state == "spawn_failed" || state == "lost") return Paint::kBad;
  return state == "running" || state == "pending" ? Paint::kNone : Paint::kFaint;
}

// "failed with 3", "failed by SIGKILL", "exited".
std::string end_of(const Json& rank) {
  std::string state = text_of(rank, "state");
  std::replace(state.begin(), state.end(), '_', ' ');
  const std::string signal = text_of(rank, "signal");
  if (!signal.empty()) return state + " by " + signal;
  const int64_t code = json_get(rank, "exit_code", int64_t{0});
  return code == 0 ? state : state + " with " + std::to_string(code);
}

// "running", and whether it is what a stalled job hangs on.
std::string state_of(const Json& rank) {
  return end_of(rank) + (json_get(rank, "suspect", false) ? ", suspect" : "");
}

// "spins", "D in nfs_wait".
std::string kernel_of(const Json& rank) {
  std::string text = json_get(rank, "spins", false) ? "spins" : text_of(rank, "process_state");
  const std::string channel = text_of(rank, "wait_channel");
  if (!channel.empty() && text != "spins") text += (text.empty() ? "in " : " in ") + channel;
  return text;
}

// How long it runs, or how long ago it ended; of a run that is over that says nothing.
std::string since_of(const Json& rank, bool live) {
  std::string since = seconds_of(rank, "since_s");
  if (since.empty() || text_of(rank, "state") == "running") return since;
  return live ? since + " ago" : "";
}

// What is worth saying of ranks that look alike.
struct Fold {
  std::vector<int> ranks;
  std::string state;
  double cpu = 0;
  int with_cpu = 0;
  int64_t rss = 0;
  int64_t silent_us = -1;
  int silent_rank = -1;
  std::set<std::string> in;
  std::string since;  // of the one that is longest in this state
  int64_t since_us = -1;

  void add(const Json& rank, bool live) {
    ranks.push_back(json_get(rank, "rank", 0));
    state = text_of(rank, "state");
    if (const double cores = json_get(rank, "cpu", -1.0); cores >= 0) {
      cpu += cores;
      ++with_cpu;
    }
    if (const std::string now = kernel_of(rank); !now.empty()) in.insert(now);
    rss += std::max<int64_t>(0, json_get(rank, "rss_bytes", int64_t{0}));
    if (const int64_t for_us = json_microseconds(rank, "since_s"); for_us > since_us) {
      since_us = for_us;
      since = since_of(rank, live);
    }
    const int64_t silent = json_microseconds(rank, "last_output_s");
    if (silent > silent_us) {
      silent_us = silent;
      silent_rank = ranks.back();
    }
  }

  // What they are in, as far as it is one thing.
  std::string process() const {
    return in.size() == 1 ? *in.begin() : in.empty() ? "" : *in.begin() + ", ...";
  }

  std::string silence() const {
    if (silent_us < 0) return "";
    std::string text = duration_text(silent_us);
    return ranks.size() == 1 ? text : text + " (" + std::to_string(silent_rank) + ")";
  }
};

}  // namespace

std::string number_text(double number) {
  char text[40];
  const double size = std::fabs(number);
  const char* format = size >= 1'000 || number == std::floor(number) ? "%.0f"
                       : size >= 10                                  ? "%.1f"
                       : size >= 0.01                                ? "%.2f"
                                                                     : "%.2g";
  std::snprintf(text, sizeof text, format, number);
  return text;
}

void write_ranks(TextFields& out, const Json& ranks, const RankStyle& style) {
  TextTable table({">rank", "host", ">pid", "state", ">since", ">last output", ">last sign",
                   "process", ">cpu", ">memory", ">gpu", ">gpu memory", ">step", ">loss", ""});
  for (const Json& rank : ranks) {
    const int64_t pid = json_get(rank, "pid", int64_t{0});
    table.row(
        {std::to_string(json_get(rank, "rank", 0)), text_of(rank, "host"),
         pid > 0 ? std::to_string(pid) : "", state_of(rank), since_of(rank, style.live),
         seconds_of(rank, "last_output_s"), style.stalled ? seconds_of(rank, "alive_s") : "",
         style.stalled ? kernel_of(rank) : "", number_of(rank, "cpu"), size_of(rank, "rss_bytes"),
         percent_of(rank, "gpu"), size_of(rank, "gpu_memory_bytes"), step_of(rank),
         number_of(rank, "loss"), text_of(rank, "notable")},
        paint_of(text_of(rank, "state")));
  }
  table.write(out, "");
}

void write_folded(TextFields& out, const Json& ranks, const RankStyle& style) {
  std::vector<std::string> order;
  std::map<std::string, Fold> folds;
  for (const Json& rank : ranks) {
    const std::string alike = state_of(rank);
    if (!folds.contains(alike)) order.push_back(alike);
    folds[alike].add(rank, style.live);
  }
  TextTable table(
      {"ranks", "state", ">since", ">cpu each", ">memory", ">silent (rank)", "process"});
  for (const std::string& alike : order) {
    const Fold& fold = folds[alike];
    table.row({format_ranges(fold.ranks), alike, fold.since,
               fold.with_cpu == 0 ? "" : number_text(fold.cpu / fold.with_cpu),
               fold.rss == 0 ? "" : size_text(fold.rss), fold.silence(),
               style.stalled ? fold.process() : ""},
              paint_of(fold.state));
  }
  table.write(out, "");
}

void write_groups(TextFields& out, const Json& groups) {
  TextTable table({"ranks", ">count", "host", "state", ">silent", ">cpu each", ">memory", "steps"});
  for (const Json& group : groups) {
    const auto least = json_get(group, "step_min", int64_t{-1});
    const auto most = json_get(group, "step_max", int64_t{-1});
    std::string state = text_of(group, "state");
    std::replace(state.begin(), state.end(), '_', ' ');
    table.row({text_of(group, "ranks"), std::to_string(json_get(group, "count", 0)),
               text_of(group, "host"), state, seconds_of(group, "silent_s"),
               number_of(group, "cpu_mean"), size_of(group, "rss_bytes"),
               least < 0       ? ""
               : least == most ? std::to_string(least)
                               : std::to_string(least) + "-" + std::to_string(most)},
              paint_of(text_of(group, "state")));
  }
  table.write(out, "");
}

}  // namespace muster
