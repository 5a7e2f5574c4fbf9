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

// "-r, --rank LIST"
std::string heading(const CommandOption& option) {
  std::string out;
  if (option.short_name != 0) out = std::string("-") + option.short_name + ", ";
  out += "--" + std::string(option.name);
  if (option.takes_value()) out += " " + std::string(option.value_name);
  return out;
}

std::string usage(const CommandSpec& spec) {
  return "muster " + std::string(spec.name) + " [options] " + std::string(spec.arguments);
}

std::string cell(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

std::string command_help(const CommandSpec& spec) {
  std::string out = "usage: " + usage(spec) + "\n\n" + std::string(spec.about) + kRunText + "\n";
  for (const CommandOption& option : spec.options)
    out += "  " + heading(option) + "\n" + wrapped(option.help);
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
      out += "| `" + cell(heading(option)) + "` | " + cell(option.help) + " |\n";
  }
  return out;
}

}  // namespace muster
