// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "loop/result.h"
#include "supervisor/cli/options.h"

namespace muster {

enum class OptionGroup { kWorkers, kProgram, kRendezvous, kFailure, kLogs, kAbout };

// What a shell completes after the option.
enum class Completes { kNothing, kFile, kDirectory, kChoices };

// What happens as soon as the option is read.
enum class OptionAction { kSet, kHelp, kVersion, kCompletion };

// One option. The parser, --help, completion, PET_ defaults, suggestions and docs/options.md are
// all made from the one table of these.
struct OptionSpec {
  std::string_view name;             // "nproc-per-node"; also accepted with underscores
  char short_name = 0;               // 0: none
  std::string_view value_name = {};  // "N", empty for a flag
  OptionGroup group = OptionGroup::kAbout;
  bool torchrun = false;     // torchrun has it too
  bool environment = false;  // PET_<NAME> is its default
  std::string_view default_text = {};
  std::vector<std::string> choices = {};
  bool only_choices = false;  // anything else is an error
  Completes completes = Completes::kNothing;
  OptionAction action = OptionAction::kSet;
  // Checks the text and stores the value. Flags get "true" or "false". The message says what was
  // expected; which option and which text is added by the caller.
  Result<void> (*set)(Options& options, const std::string& text) = nullptr;
  std::string_view help = {};

  bool takes_value() const { return !value_name.empty(); }
  std::string destination() const;  // nproc_per_node
  std::string variable() const;     // PET_NPROC_PER_NODE, empty if the environment has no say
};

const std::vector<OptionSpec>& option_table();

std::string_view group_title(OptionGroup group);
std::span<const OptionGroup> option_groups();  // in the order of --help

}  // namespace muster
