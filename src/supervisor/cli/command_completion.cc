// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/command_completion.h"

#include <vector>

#include "supervisor/cli/command_table.h"
#include "supervisor/cli/values.h"

namespace muster {

namespace {

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const CommandSpec& spec : command_table())
    names.emplace_back(spec.name);
  return names;
}

// The help up to its first colon or full stop, with no character that a shell would mind.
std::string plain_summary(std::string_view help) {
  std::string out;
  for (char c : help.substr(0, help.find_first_of(".:"))) {
    if (std::string_view("'[]\\").find(c) == std::string_view::npos) out += c;
  }
  return out;
}

std::vector<std::string> spellings(const CommandOption& option) {
  std::vector<std::string> all = {"--" + std::string(option.name)};
  if (option.short_name != 0) all.push_back(std::string("-") + option.short_name);
  return all;
}

std::string bash_command(const CommandSpec& spec) {
  std::vector<std::string> names = {"--help"};
  std::string cases;
  for (const CommandOption& option : spec.options) {
    const std::vector<std::string> ways = spellings(option);
    names.push_back(ways.front());
    if (!option.takes_value()) continue;
    cases += "      " + join(ways, "|") + ") COMPREPLY=(" +
             (option.choices.empty()
                  ? ""
                  : "$(compgen -W '" + join(option.choices, " ") + "' -- \"$current\")") +
             "); return ;;\n";
  }
  std::string out = "    " + std::string(spec.name) + ")\n";
  if (!cases.empty()) out += "      case $previous in\n" + cases + "      esac\n";
  return out + "      case $current in\n      -*) COMPREPLY=($(compgen -W '" + join(names, " ") +
         "' -- \"$current\")) ;;\n"
         "      *) COMPREPLY=($(compgen -d -- \"$current\")) ;;\n      esac\n      return ;;\n";
}

std::string zsh_command(const CommandSpec& spec) {
  std::string out = "    " + std::string(spec.name) +
                    ")\n      shift words; (( CURRENT-- ))\n      _arguments -s -S : \\\n";
  for (const CommandOption& option : spec.options) {
    for (const std::string& way : spellings(option)) {
      const char* mark = !option.takes_value() ? "" : way.size() == 2 ? "+" : "=";
      out += "        '" + way + mark + "[" + plain_summary(option.help) + "]";
      if (option.takes_value()) {
        out += ":value:";
        out += option.choices.empty() ? " " : "(" + join(option.choices, " ") + ")";
      }
      out += "' \\\n";
    }
  }
  return out + "        '1:run:_files -/'\n      return ;;\n";
}

}  // namespace

std::string bash_commands() {
  std::string out =
      "  if [ $COMP_CWORD -gt 1 ] && [ \"${COMP_WORDS[0]##*/}\" != torchrun ]; then\n"
      "    [ \"$previous\" = = ] && previous=${COMP_WORDS[COMP_CWORD-2]}\n"
      "    [ \"$current\" = = ] && current=\n"
      "    case ${COMP_WORDS[1]} in\n";
  for (const CommandSpec& spec : command_table())
    out += bash_command(spec);
  return out +
         "    esac\n"
         "  elif [ \"${current#-}\" = \"$current\" ] && [ $COMP_CWORD = 1 ]; then\n"
         "    COMPREPLY=($(compgen -f -- \"$current\"))\n"
         "    [ \"${COMP_WORDS[0]##*/}\" = torchrun ] ||\n"
         "      COMPREPLY+=($(compgen -W '" +
         join(command_names(), " ") +
         "' -- \"$current\"))\n"
         "    return\n"
         "  fi\n";
}

std::string zsh_commands() {
  std::string out =
      "  if (( CURRENT > 2 )) && [[ ${words[1]:t} != torchrun ]]; then\n"
      "    case ${words[2]} in\n";
  for (const CommandSpec& spec : command_table())
    out += zsh_command(spec);
  return out +
         "    esac\n"
         "  elif (( CURRENT == 2 )) && [[ ${words[1]:t} != torchrun ]]; then\n"
         "    compadd -- " +
         join(command_names(), " ") +
         "\n"
         "  fi\n";
}

std::string fish_commands() {
  std::string out;
  const std::string all = join(command_names(), " ");
  for (const CommandSpec& spec : command_table()) {
    const std::string name(spec.name);
    const std::string here = "  complete -c muster -n '__fish_seen_subcommand_from " + name + "'";
    out += "  complete -c muster -n 'not __fish_seen_subcommand_from " + all + "' -a " + name +
           " -d '" + plain_summary(spec.summary) + "'\n";
    for (const CommandOption& option : spec.options) {
      out += here + " -l " + std::string(option.name);
      if (option.short_name != 0) out += std::string(" -s ") + option.short_name;
      if (option.takes_value()) out += " -x";
      if (!option.choices.empty()) out += " -a '" + join(option.choices, " ") + "'";
      out += " -d '" + plain_summary(option.help) + "'\n";
    }
  }
  return out;
}

}  // namespace muster
