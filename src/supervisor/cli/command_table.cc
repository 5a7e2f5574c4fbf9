// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/command_table.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "supervisor/cli/since.h"
#include "supervisor/cli/stream_map.h"
#include "supervisor/cli/values.h"

namespace muster {

namespace {

constexpr std::array<std::string_view, 4> kNames = {"status", "logs", "dump", "view"};

constexpr int64_t kMaxCount = 1'000'000'000;
constexpr int kMaxContext = 10;  // as the API has it

template <auto Member>
Result<void> flag(CommandOptions& options, const std::string&) {
  options.*Member = true;
  return {};
}

Result<void> set_ranks(CommandOptions& options, const std::string& text) {
  Result<RankFilter> ranks = parse_rank_filter(text);
  if (!ranks) return ranks.error();
  if (ranks->passes_all()) return Error{0, "expected ranks such as 0,3-5"};
  options.ranks = text;
  std::erase(options.ranks, ' ');
  return {};
}

Result<void> set_stream(CommandOptions& options, const std::string& text) {
  if (text != "stdout" && text != "stderr" && text != "both") {
    return Error{0, "expected stdout, stderr or both"};
  }
  options.streams = text == "both" ? "" : text;
  return {};
}

Result<void> set_attempt(CommandOptions& options, const std::string& text) {
  options.attempt.reset();
  options.all_attempts = text == "all";
  if (options.all_attempts) return {};
  std::optional<int64_t> number = parse_int(text);
  if (!number || *number < 0 || *number > kMaxCount) {
    return Error{0, "expected the number of an attempt, from 0, or all"};
  }
  options.attempt = static_cast<int>(*number);
  return {};
}

Result<void> set_tail(CommandOptions& options, const std::string& text) {
  options.tail.reset();
  options.tail_all = text == "all";
  if (options.tail_all) return {};
  std::optional<int64_t> number = parse_int(text);
  if (!number || *number < 0 || *number > kMaxCount) {
    return Error{0, "expected a number of lines, or all"};
  }
  options.tail = *number;
  return {};
}

Result<void> set_grep(CommandOptions& options, const std::string& text) {
  if (text.empty()) return Error{0, "expected what to look for"};
  options.grep = text;
  return {};
}

Result<void> set_context(CommandOptions& options, const std::string& text) {
  std::optional<int64_t> number = parse_int(text);
  if (!number || *number < 0 || *number > kMaxContext) {
    return Error{0, "expected a number of lines from 0 to " + std::to_string(kMaxContext)};
  }
  options.context = static_cast<int>(*number);
  return {};
}

Result<void> set_since(CommandOptions& options, const std::string& text) {
  options.since_us = parse_since(text, std::chrono::system_clock::now());
  if (options.since_us) return {};
  return Error{0,
               "expected how long ago (90s, 15m, 2h, 3d) or a time (12:30, "
               "2026-11-29T12:00:00Z)"};
}

Result<void> set_http(CommandOptions& options, const std::string& text) {
  Result<HttpPlace> place = parse_http_place(text);
  if (!place) return place.error();
  if (!place->on) return Error{0, "a page that is off cannot be viewed; expected HOST:PORT"};
  options.http = *place;
  return {};
}

CommandSpec status_command() {
  CommandSpec spec;
  spec.command = Command::kStatus;
  spec.name = kNames[0];
  spec.summary = "what a run does, or why it failed";
  spec.about =
      "Says what a job does, who is waited for, and why it failed: during the run and "
      "after it.\n";
  spec.notes =
      "Exit codes:\n"
      "  0 the job runs or has succeeded    2 the command line is wrong\n"
      "  1 it failed, was stopped or killed 3 there is no such run   4 it cannot be asked\n\n"
      "Examples:\n"
      "  muster status                      the newest run\n"
      "  muster status --watch              a live table; q ends it\n"
      "  muster status --json | jq .job.phase\n"
      "  muster status 'http://node-a:34521/?token=...'\n";
  spec.options = {
      {.name = "json",
       .set = flag<&CommandOptions::json>,
       .help = "Print what GET /status answers, as docs/api.md describes it."},
      {.name = "watch",
       .short_name = 'w',
       .set = flag<&CommandOptions::watch>,
       .help = "Show a live table until q or Ctrl-C; where stdout is no terminal, a line for each "
               "change until the job ends."},
      {.name = "ranks",
       .short_name = 'r',
       .value_name = "LIST",
       .set = set_ranks,
       .help = "Show these ranks in detail, such as 0,3-5."},
  };
  return spec;
}

std::vector<CommandOption> choosing_options() {
  return {
      {.name = "follow",
       .short_name = 'f',
       .set = flag<&CommandOptions::follow>,
       .help = "Go on with what is written, through restarts, until the job ends. Begins with the "
               "last 10 lines of each log unless --tail or --since says otherwise."},
      {.name = "rank",
       .short_name = 'r',
       .value_name = "LIST",
       .set = set_ranks,
       .help = "Only these global ranks, such as 0,3-5."},
      {.name = "stream",
       .short_name = 's',
       .value_name = "STREAM",
       .choices = {"stdout", "stderr", "both"},
       .completes = Completes::kChoices,
       .set = set_stream,
       .help = "stdout, stderr or both [default: both]."},
      {.name = "attempt",
       .short_name = 'a',
       .value_name = "N|all",
       .set = set_attempt,
       .help = "An attempt by its number, from 0, or all of them [default: the last one]."},
      {.name = "tail",
       .short_name = 'n',
       .value_name = "N|all",
       .set = set_tail,
       .help = "Only the last N lines of each log."},
      {.name = "since",
       .value_name = "TIME",
       .set = set_since,
       .help = "Only what came since then: 90s, 15m, 2h or 3d ago, 12:30, or "
               "2026-11-29T12:00:00Z."},
  };
}

std::vector<CommandOption> printing_options() {
  return {
      {.name = "grep",
       .short_name = 'g',
       .value_name = "REGEX",
       .set = set_grep,
       .help = "Only lines that match (RE2's expressions), searched where the logs are."},
      {.name = "fixed",
       .short_name = 'F',
       .set = flag<&CommandOptions::fixed>,
       .help = "What --grep looks for is a text, not an expression."},
      {.name = "ignore-case",
       .short_name = 'i',
       .set = flag<&CommandOptions::ignore_case>,
       .help = "Let --grep take upper and lower case for the same."},
      {.name = "context",
       .short_name = 'C',
       .value_name = "N",
       .set = set_context,
       .help = "N lines before and after each that matches."},
      {.name = "raw",
       .set = flag<&CommandOptions::raw>,
       .help = "The bytes as they were written, one log after the other, without prefixes."},
      {.name = "timestamps",
       .short_name = 't',
       .set = flag<&CommandOptions::timestamps>,
       .help = "The time at which each line came, where it is known, before it."},
      {.name = "json",
       .set = flag<&CommandOptions::json>,
       .help = "Each line as a JSON object: attempt, rank, stream, offset, number, time_us, text."},
  };
}

CommandSpec logs_command() {
  CommandSpec spec;
  spec.command = Command::kLogs;
  spec.name = kNames[1];
  spec.summary = "what its workers wrote";
  spec.about =
      "Prints what the workers of a run wrote, of one rank or of many in the order of "
      "time: during the\nrun and after it.\n";
  spec.notes =
      "Exit codes:\n"
      "  0 done    1 --grep found nothing    2 the command line is wrong\n"
      "  3 there is no such run or log       4 it cannot be asked    130 Ctrl-C\n\n"
      "Examples:\n"
      "  muster logs -f                     the newest run, as it goes on\n"
      "  muster logs --rank 3 -n 100        the last lines of one rank\n"
      "  muster logs --grep 'loss (nan|inf)' -C 3 --attempt all\n"
      "  muster logs --rank 0 --stream stderr --raw > err.txt\n";
  spec.options = choosing_options();
  for (CommandOption& option : printing_options())
    spec.options.push_back(std::move(option));
  return spec;
}

CommandSpec dump_command() {
  CommandSpec spec;
  spec.command = Command::kDump;
  spec.name = kNames[2];
  spec.summary = "where its workers are right now, on all nodes";
  spec.about =
      "Saves where every thread of every worker is, in the kernel and in the program, without a\n"
      "signal to any of them, and says which ranks do the same and which one differs. Files go to\n"
      "the run's folder on each node.\n";
  spec.notes =
      "Exit codes:\n"
      "  0 done    1 nothing could be seen    2 the command line is wrong\n"
      "  3 there is no such run    4 it cannot be asked, or does not run\n\n"
      "Examples:\n"
      "  muster dump                        the newest run\n"
      "  muster dump 'http://node-a:34521/?token=...'\n";
  spec.options = {
      {.name = "json",
       .set = flag<&CommandOptions::json>,
       .help = "Print what POST /api/v1/dump answers, as docs/api.md describes it."},
  };
  return spec;
}

CommandSpec view_command() {
  CommandSpec spec;
  spec.command = Command::kView;
  spec.name = kNames[3];
  spec.summary = "its page, when the run itself is over";
  spec.about =
      "Serves the page of a run from its files, whether it ended, was killed or still "
      "runs, and prints\nthe address. Ctrl-C ends it.\n";
  spec.notes =
      "Exit codes:\n"
      "  0 ended by Ctrl-C    1 the port cannot be had    2 the command line is wrong\n"
      "  3 there is no such run\n\n"
      "Examples:\n"
      "  muster view                        the newest run\n"
      "  muster view --open runs/4f1c_k3jx0a2b\n"
      "  muster view --http 0.0.0.0:8080    for a browser on another machine\n";
  spec.options = {
      {.name = "http",
       .value_name = "HOST:PORT",
       .set = set_http,
       .help = "Where to listen [default: 127.0.0.1 and a free port]."},
      {.name = "open",
       .set = flag<&CommandOptions::open>,
       .help = "Open the page in a browser, if there is one."},
      {.name = "json",
       .set = flag<&CommandOptions::json>,
       .help = "Print the address as a JSON object: url, run_id, run_dir, live."},
  };
  return spec;
}

}  // namespace

const std::vector<CommandSpec>& command_table() {
  static const std::vector<CommandSpec> table = {status_command(), logs_command(), dump_command(),
                                                 view_command()};
  return table;
}

const CommandSpec* find_command(std::string_view word) {
  // Most command lines start a job: they are told apart without making the table.
  if (std::find(kNames.begin(), kNames.end(), word) == kNames.end()) return nullptr;
  for (const CommandSpec& spec : command_table()) {
    if (spec.name == word) return &spec;
  }
  return nullptr;
}

}  // namespace muster
