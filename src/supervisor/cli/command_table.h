// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "loop/result.h"
#include "supervisor/cli/command_options.h"
#include "supervisor/cli/option_table.h"

namespace muster {

// One option of a command.
struct CommandOption {
  std::string_view name;
  char short_name = 0;
  std::string_view value_name = {};  // empty for a flag
  std::vector<std::string> choices = {};
  Completes completes = Completes::kNothing;
  // Checks the text and stores the value; flags get "". The message says what was expected.
  Result<void> (*set)(CommandOptions& options, const std::string& text) = nullptr;
  std::string_view help = {};

  bool takes_value() const { return !value_name.empty(); }
};

struct CommandSpec {
  Command command = Command::kStatus;
  std::string_view name;
  std::string_view arguments = "[RUN]";
  std::string_view summary;  // for `muster --help`
  std::string_view about;    // what --help begins with
  std::string_view notes;    // and ends with: examples, exit codes
  std::vector<CommandOption> options;
};

// The parser, --help, completion and docs/commands.md are made from this table.
const std::vector<CommandSpec>& command_table();

// Null if `word` is no command.
const CommandSpec* find_command(std::string_view word);

std::string command_help(const CommandSpec& spec);
std::string commands_summary();   // for `muster --help`
std::string commands_markdown();  // the tables of docs/commands.md

}  // namespace muster
