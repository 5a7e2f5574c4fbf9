// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/help.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "skip.h"
#include "supervisor/cli/command_table.h"
#include "supervisor/cli/completion.h"
#include "supervisor/cli/option_table.h"
#include "supervisor/cli/parse.h"

namespace muster {
namespace {

EarlyExit exit_of(std::vector<std::string> words, const Environment& environment = {}) {
  words.insert(words.begin(), "muster");
  Parsed parsed = parse(words, environment);
  REQUIRE(std::holds_alternative<EarlyExit>(parsed));
  return std::get<EarlyExit>(parsed);
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Runs `script` in a shell with `input` as a file argument $1 and returns what it prints.
std::string shell_output(const std::string& shell, const std::string& input,
                         const std::string& script) {
  char path[] = "/tmp/muster-completion-XXXXXX";
  int fd = mkstemp(path);
  REQUIRE(fd >= 0);
  close(fd);
  std::ofstream(path) << input;
  std::string program = std::string(path) + ".run";
  std::ofstream(program) << script;
  FILE* pipe = popen((shell + " " + program + " " + path + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string out;
  for (int c = fgetc(pipe); c != EOF; c = fgetc(pipe))
    out += static_cast<char>(c);
  pclose(pipe);
  unlink(path);
  unlink(program.c_str());
  return out;
}

bool installed(const std::string& shell) {
  return std::system(("command -v " + shell + " >/dev/null 2>&1").c_str()) == 0;
}

}  // namespace

TEST_CASE("--help shows every option with its variable, whatever else is wrong") {
  EarlyExit exit = exit_of({"--help"}, {"PET_STANDALONE=maybe", "PET_NNODES="});
  CHECK(exit.code == 0);
  CHECK(exit.err.empty());
  for (const OptionSpec& spec : option_table()) {
    CAPTURE(spec.name);
    CHECK(has(exit.out, "--" + std::string(spec.name)));
    CHECK(has(exit.out, spec.variable()));
  }
  for (OptionGroup group : option_groups())
    CHECK(has(exit.out, std::string(group_title(group))));
  CHECK(exit_of({"-h"}).out == exit.out);
  CHECK(exit_of({"run", "--he"}).out == exit.out);
}

TEST_CASE("help lines fit 80 columns unless a heading does not") {
  std::istringstream lines(help_text());
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    CHECK(line.size() <= 95);
  }
}

TEST_CASE("--version names muster and the libraries in it") {
  EarlyExit exit = exit_of({"--version"});
  CHECK(exit.code == 0);
  for (const char* name : {"muster ", "libuv 1.", "llhttp ", "nlohmann/json 3."}) {
    CHECK(has(exit.out, name));
  }
}

TEST_CASE("the table is complete and free of clashes") {
  std::set<std::string> names;
  std::set<char> shorts;
  for (const OptionSpec& spec : option_table()) {
    CAPTURE(spec.name);
    CHECK(names.insert(std::string(spec.name)).second);
    if (spec.short_name != 0) CHECK(shorts.insert(spec.short_name).second);
    CHECK(!spec.help.empty());
    CHECK((spec.set != nullptr || spec.action != OptionAction::kSet));
    CHECK((!spec.only_choices || !spec.choices.empty()));
    CHECK((spec.choices.empty() || spec.takes_value()));
  }
}

TEST_CASE("every option of torchrun is there") {
  for (const char* name : {"nnodes",
                           "nproc-per-node",
                           "rdzv-backend",
                           "rdzv-endpoint",
                           "rdzv-id",
                           "rdzv-conf",
                           "standalone",
                           "max-restarts",
                           "monitor-interval",
                           "start-method",
                           "event-log-handler",
                           "role",
                           "module",
                           "no-python",
                           "run-path",
                           "log-dir",
                           "redirects",
                           "tee",
                           "log-line-prefix-template",
                           "local-ranks-filter",
                           "duplicate-stdout-filters",
                           "duplicate-stderr-filters",
                           "node-rank",
                           "master-addr",
                           "master-port",
                           "local-addr",
                           "logs-specs",
                           "numa-binding",
                           "signals-to-handle",
                           "shutdown-timeout",
                           "virtual-local-rank",
                           "print-completion",
                           "help"}) {
    bool found = false;
    for (const OptionSpec& spec : option_table())
      found |= spec.name == name && spec.torchrun;
    CAPTURE(name);
    CHECK(found);
  }
}

TEST_CASE("docs/options.md is what the table says") {
  std::string path = MUSTER_SOURCE_DIR "/docs/options.md";
  if (std::getenv("MUSTER_UPDATE_DOCS") != nullptr) std::ofstream(path) << options_markdown();
  std::ifstream file(path);
  std::ostringstream content;
  content << file.rdbuf();
  INFO("run this test with MUSTER_UPDATE_DOCS=1 to write the file anew");
  CHECK((content.str() == options_markdown()));
}

TEST_CASE("docs/commands.md ends with what the command table says") {
  const std::string path = MUSTER_SOURCE_DIR "/docs/commands.md";
  std::ostringstream content;
  content << std::ifstream(path).rdbuf();
  const std::string text = content.str();
  const size_t tables = text.find("\n### muster ");
  REQUIRE(tables != std::string::npos);
  if (std::getenv("MUSTER_UPDATE_DOCS") != nullptr) {
    std::ofstream(path) << text.substr(0, tables) << commands_markdown();
    return;
  }
  INFO("run this test with MUSTER_UPDATE_DOCS=1 to write the tables anew");
  CHECK((text.substr(tables) == commands_markdown()));
}

TEST_CASE("--help and the introduction name the commands") {
  const std::string out = exit_of({"--help"}).out;
  for (const CommandSpec& spec : command_table())
    CHECK(has(out, "muster " + std::string(spec.name) + " [RUN]"));
}

TEST_CASE("completion scripts name every option") {
  for (const char* shell : {"bash", "zsh", "tcsh", "fish"}) {
    EarlyExit exit = exit_of({"--print-completion", shell});
    CHECK(exit.code == 0);
    for (const OptionSpec& spec : option_table()) {
      CAPTURE(shell);
      CAPTURE(spec.name);
      CHECK(has(exit.out, std::string(spec.name)));
    }
  }
  CHECK(exit_of({"--print-completion"}).code == 2);
}

TEST_CASE("bash completes options, their values and, after the script, files") {
  const char* kProbe =
      ". $1\n"
      "try() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _muster; "
      "echo \"${COMPREPLY[*]}\"; }\n"
      "cd /etc\n"
      "try muster --nproc\n"
      "try muster --tee 3 --nproc_per_node g\n"
      "try muster --numa-binding = co\n"
      "try muster run --tee 3 x.py --nproc\n"
      "try muster --tee 3 passw\n"
      "try muster --role ''\n";
  std::string out = shell_output("bash", completion_script("bash"), kProbe);
  CHECK(has(out, "--nproc-per-node\ngpu\ncore-complex\n\npasswd"));
}

TEST_CASE("bash completes commands, their options and values") {
  const char* kProbe =
      ". $1\n"
      "try() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _muster; "
      "echo \"${COMPREPLY[*]}\"; }\n"
      "cd /etc\n"
      "try muster sta\n"
      "try muster logs --fo\n"
      "try muster logs -f --stream std\n"
      "try muster logs --stream = b\n"
      "try muster status --watch apt\n"
      "try muster logs --rank ''\n"
      "try torchrun sta\n"
      "try torchrun logs --nproc-per\n"
      "echo end\n";
  std::string out = shell_output("bash", completion_script("bash"), kProbe);
  CHECK(out == "status\n--follow\nstdout stderr\nboth\napt\n\n\n\nend\n");
}

TEST_CASE("other shells accept their completion script") {
  if (installed("zsh")) {
    CHECK(shell_output("zsh -f", completion_script("zsh"),
                       "compdef() { echo $*; }; . $1; echo done") ==
          "_muster muster torchrun\ndone\n");
  } else {
    say_skipped("no zsh");
  }
  if (installed("tcsh")) {
    CHECK(has(shell_output("tcsh -f", completion_script("tcsh"), "source $1; complete muster"),
              "nproc-per-node"));
  } else {
    say_skipped("no tcsh");
  }
  if (installed("fish")) {
    std::string out = shell_output("fish", completion_script("fish"),
                                   "source $argv[1]; complete -C 'muster --nproc-per-node g'");
    CHECK(out.starts_with("gpu"));
    out = shell_output("fish", completion_script("fish"),
                       "source $argv[1]; complete -C 'muster logs --strea'; "
                       "complete -C 'muster statu'");
    CHECK(has(out, "--stream"));
    CHECK(has(out, "status"));
  } else {
    say_skipped("no fish");
  }
}

}  // namespace muster
