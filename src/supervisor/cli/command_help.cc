// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "supervisor/cli/command_table.h"
#include "supervisor/cli/wrap.h"

namespace muster {

namespace {

constexpr const char* kRunText =
    "RUN is the address that the run printed, its folder, or the beginning of its id. Without it\n"
    "your newest live run is taken, else the newest one that is left. A folder of runs, as given\n"
    "with --log-dir, means the newest in there.\n";

std::string usage(const CommandSpec& spec) {
  return "muster " + std::string(spec.name) + " [options] " + std::string(spec.arguments);
}

}  // namespace

std::string command_help(const CommandSpec& spec) {
  std::string out = "usage: " + usage(spec) + "\n\n" + std::string(spec.about) + kRunText + "\n";
  for (const CommandOption& option : spec.options)
    out += "  " + option_heading(option.short_name, option.name, option.value_name) + "\n" +
           wrapped(option.help);
  out += "  -h, --help\n" + wrapped("Show this and exit.");
  return out + "\n" + std::string(spec.notes);
}

std::string commands_summary() {
  std::string out = "Commands, each with a --help of its own:\n";
  for (const CommandSpec& spec : command_table()) {
    std::string name = "  muster " + std::string(spec.name) + " " + std::string(spec.arguments);
    name.resize(std::max<size_t>(name.size() + 1, 24), ' ');
    out += name + std::string(spec.summary) + "\n";
  }
  return out;
}

std::string commands_markdown() {
  std::string out;
  for (const CommandSpec& spec : command_table()) {
    out += "\n### " + usage(spec) + "\n\n| option | meaning |\n| --- | --- |\n";
    for (const CommandOption& option : spec.options)
      out += "| `" + table_cell(option_heading(option.short_name, option.name, option.value_name)) +
             "` | " + table_cell(option.help) + " |\n";
  }
  return out;
}

}  // namespace muster
