// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>

#include "supervisor/cli/command_parse.h"
#include "supervisor/cli/command_table.h"
#include "supervisor/cli/since.h"

namespace muster {

namespace {

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;)
    words.push_back(word);
  return words;
}

CommandOptions options_of(const std::string& line) {
  std::optional<ParsedCommand> parsed = parse_command(words_of(line));
  REQUIRE(parsed);
  if (auto* exit = std::get_if<EarlyExit>(&*parsed)) FAIL(line << ": " << exit->err);
  return std::get<CommandOptions>(*parsed);
}

EarlyExit exit_of(const std::string& line) {
  std::optional<ParsedCommand> parsed = parse_command(words_of(line));
  REQUIRE(parsed);
  REQUIRE(std::holds_alternative<EarlyExit>(*parsed));
  return std::get<EarlyExit>(*parsed);
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a command is the first word, and nothing else is one") {
  CHECK(parse_command({"muster", "status"}));
  CHECK(parse_command({"/usr/bin/muster", "logs", "-f"}));
  CHECK(parse_command({"muster", "view"}));
  CHECK_FALSE(parse_command({"muster"}));
  CHECK_FALSE(parse_command({}));
  CHECK_FALSE(parse_command({"muster", "./status"}));
  CHECK_FALSE(parse_command({"muster", "--", "status"}));
  CHECK_FALSE(parse_command({"muster", "run", "status"}));
  CHECK_FALSE(parse_command({"muster", "--nproc-per-node", "2", "status"}));
  CHECK_FALSE(parse_command({"muster", "statu"}));
  CHECK_FALSE(parse_command({"/opt/bin/torchrun", "status"}));
}

TEST_CASE("options stand before or behind the run, long, shortened or short") {
  for (const char* line :
       {"muster logs -f -r 0,3-5 -n 20 4f1c", "muster logs 4f1c --follow --rank=0,3-5 --tail 20",
        "muster logs --fol 4f1c -r0,3-5 -n20", "muster logs -fr 0,3-5 --ta=20 -- 4f1c"}) {
    CAPTURE(line);
    CommandOptions options = options_of(line);
    CHECK(options.command == Command::kLogs);
    CHECK(options.follow);
    CHECK(options.ranks == "0,3-5");
    CHECK(options.tail == 20);
    CHECK(options.run == "4f1c");
  }
  CommandOptions options = options_of("muster status --watch");
  CHECK(options.command == Command::kStatus);
  CHECK(options.watch);
  CHECK(options.run.empty());
  CHECK(options_of("muster view --http 0.0.0.0:8080 --open").http.port == 8080);
}

TEST_CASE("values are checked where they are given") {
  CommandOptions options = options_of("muster logs -g a.b -i -C 3 --attempt all -s stderr -t");
  CHECK(options.grep == "a.b");
  CHECK(options.ignore_case);
  CHECK(options.context == 3);
  CHECK(options.all_attempts);
  CHECK(options.streams == "stderr");
  CHECK(options_of("muster logs --attempt 2").attempt == 2);
  CHECK(options_of("muster logs --stream both").streams.empty());
  CHECK_FALSE(options_of("muster logs -n all").tail);
  CHECK(options_of("muster logs -n 0").tail == 0);

  struct Wrong {
    const char* line;
    const char* says;
  };
  for (Wrong wrong : {
           Wrong{"muster logs --rank x", "--rank 'x': 'x' is no rank"},
           Wrong{"muster logs --rank 5-3", "is no rank"},
           Wrong{"muster logs --attempt -1", "from 0, or all"},
           Wrong{"muster logs -n many", "a number of lines, or all"},
           Wrong{"muster logs --stream out", "expected stdout, stderr or both"},
           Wrong{"muster logs --since soon", "90s, 15m, 2h, 3d"},
           Wrong{"muster logs --grep x -C 1000", "from 0 to 10"},
           Wrong{"muster logs --grep", "--grep expects REGEX"},
           Wrong{"muster logs --folow", "no option --folow (did you mean --follow?)"},
           Wrong{"muster logs -q", "no option -q"},
           Wrong{"muster logs --follow=yes", "--follow takes no value"},
           Wrong{"muster logs a b", "one run at a time, but there is 'b' besides 'a'"},
           Wrong{"muster logs --raw --json", "exclude each other"},
           Wrong{"muster logs --raw --grep x", "exclude each other"},
           Wrong{"muster logs --raw -f", "exclude each other"},
           Wrong{"muster logs -n 3 --since 1h", "exclude each other"},
           Wrong{"muster logs -f -n 6000", "at most 5000 lines of each log, or with all"},
           Wrong{"muster logs -i", "about --grep, which is missing"},
           Wrong{"muster status --watch --json", "--json for programs"},
           Wrong{"muster view --http off", "cannot be viewed"},
           Wrong{"muster view --http nonsense:1", "is no address"},
       }) {
    CAPTURE(wrong.line);
    EarlyExit exit = exit_of(wrong.line);
    CHECK(exit.code == 2);
    CHECK(exit.out.empty());
    CAPTURE(exit.err);
    CHECK(has(exit.err, wrong.says));
    CHECK(has(exit.err, "--help shows how it is used"));
  }
}

TEST_CASE("--help of each command names all its options and what its exit codes mean") {
  for (const CommandSpec& spec : command_table()) {
    CAPTURE(spec.name);
    EarlyExit exit = exit_of("muster " + std::string(spec.name) + " --help");
    CHECK(exit.code == 0);
    CHECK(exit.err.empty());
    for (const CommandOption& option : spec.options)
      CHECK(has(exit.out, "--" + std::string(option.name)));
    CHECK(has(exit.out, "Exit codes:"));
    CHECK(has(exit.out, "Examples:"));
    std::istringstream lines(exit.out);
    for (std::string line; std::getline(lines, line);)
      CHECK(line.size() <= 100);
    CHECK(exit_of("muster " + std::string(spec.name) + " -h").out == exit.out);
  }
}

TEST_CASE("a time is how long ago, of today, or whole") {
  setenv("TZ", "UTC", 1);
  tzset();
  const auto now = std::chrono::system_clock::from_time_t(1'795'953'600);  // 2026-11-29T12:00:00Z
  const int64_t noon = int64_t{1'795'953'600} * 1'000'000;
  const int64_t second = 1'000'000;
  CHECK(parse_since("90", now) == noon - 90 * second);
  CHECK(parse_since("90s", now) == noon - 90 * second);
  CHECK(parse_since("1.5m", now) == noon - 90 * second);
  CHECK(parse_since("2h", now) == noon - 7200 * second);
  CHECK(parse_since("3d", now) == noon - 3 * 86'400 * second);
  CHECK(parse_since("11:30", now) == noon - 1800 * second);
  CHECK(parse_since("11:59:58", now) == noon - 2 * second);
  CHECK(parse_since("12:30", now) == noon + 1800 * second - 86'400 * second);
  CHECK(parse_since("2026-11-29T12:00:00Z", now) == noon);
  CHECK(parse_since("2026-11-29T12:00:00", now) == noon);
  CHECK(parse_since("2026-11-29 12:00", now) == noon);
  CHECK(parse_since("2026-11-29", now) == noon - 12 * 3600 * second);
  for (const char* wrong : {"", "soon", "-5", "5w", "25:00", "2026-13-01", "9999d", "1h2m"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_since(wrong, now));
  }
}

}  // namespace muster
