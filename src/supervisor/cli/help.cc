// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/help.h"

#include <nlohmann/json_fwd.hpp>
#include <sstream>

#include "loop/versions.h"
#include "supervisor/cli/command_table.h"
#include "supervisor/cli/option_table.h"
#include "supervisor/cli/wrap.h"

namespace muster {
namespace {

constexpr const char* kIntroduction =
    "Starts the workers of a distributed job, brings them together, keeps their logs, and says\n"
    "what went wrong. Takes torchrun's command line; options stand before the script, and what\n"
    "follows the script is passed on untouched. Names may be written with dashes or underscores\n"
    "and shortened; a PET_ variable is an option's default. muster run ... is the same.\n";

constexpr const char* kExamples =
    "Examples:\n"
    "  muster --nproc-per-node 4 train.py --epochs 10\n"
    "  muster --gpus 2,4,7 --max-restarts 3 --numa-binding node train.py\n"
    "  muster --nproc-per-node 2 -m package.train\n"
    "  muster --nproc-per-node 8 ./solver input.dat\n";

std::string choices_text(const OptionSpec& spec) {
  std::string out;
  for (const std::string& choice : spec.choices)
    out += (out.empty() ? "" : ", ") + choice;
  return out;
}

// What follows the description: choices, default and variable.
std::string details(const OptionSpec& spec) {
  std::string out;
  if (spec.only_choices) out += "One of " + choices_text(spec) + ". ";
  if (!spec.default_text.empty()) out += "[default: " + std::string(spec.default_text) + "] ";
  if (!spec.variable().empty()) out += "[" + spec.variable() + "] ";
  return out;
}

std::string code(std::string_view text) {
  return text.empty() ? "" : "`" + table_cell(text) + "`";
}

}  // namespace

std::string usage_line() {
  return "usage: muster [options] script [script arguments]\n";
}

std::string help_text() {
  std::string out = usage_line() + "\n" + kIntroduction + "\n" + commands_summary();
  for (OptionGroup group : option_groups()) {
    out += "\n" + std::string(group_title(group)) + ":\n";
    for (const OptionSpec& spec : option_table()) {
      if (spec.group != group) continue;
      out += "  " + option_heading(spec.short_name, spec.name, spec.value_name) + "\n";
      out += wrapped(std::string(spec.help) + " " + details(spec));
    }
  }
  return out + "\n" + kExamples;
}

std::string version_text() {
  std::ostringstream out;
  out << "muster " << MUSTER_VERSION << "\n"
      << "libuv " << libuv_version() << "\n"
      << "llhttp " << llhttp_version() << "\n"
      << "nlohmann/json " << NLOHMANN_JSON_VERSION_MAJOR << "." << NLOHMANN_JSON_VERSION_MINOR
      << "." << NLOHMANN_JSON_VERSION_PATCH << "\n";
  return out.str();
}

std::string options_markdown() {
  std::string out =
      "# Options\n\n"
      "Made from the option table that `muster --help` prints; a test compares the two.\n\n"
      "`muster [options] script [script arguments]`; `muster run ...` is the same. Parsing stops "
      "at "
      "the script: what follows it is the script's. A script that is really called `run`, "
      "`status`, `logs`, `dump` or `view` is given as `./run`; the last four are commands "
      "([commands.md](commands.md)). Names may be written with dashes or underscores and "
      "shortened. A `PET_` "
      "variable "
      "is the default of its option; for a flag it is 1, 0, true, false, yes or no.\n";
  for (OptionGroup group : option_groups()) {
    out += "\n## " + std::string(group_title(group)) +
           "\n\n| option | default | environment | in torchrun | meaning |\n"
           "| --- | --- | --- | --- | --- |\n";
    for (const OptionSpec& spec : option_table()) {
      if (spec.group != group) continue;
      out += "| " + code(option_heading(spec.short_name, spec.name, spec.value_name)) + " | " +
             table_cell(spec.default_text) + " | " + code(spec.variable()) + " | " +
             (spec.torchrun ? "yes" : "no") + " | " + table_cell(spec.help);
      if (spec.only_choices) out += " One of " + choices_text(spec) + ".";
      out += " |\n";
    }
  }
  return out;
}

}  // namespace muster
