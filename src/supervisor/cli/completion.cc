// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/completion.h"

#include <vector>

#include "supervisor/cli/command_completion.h"
#include "supervisor/cli/option_table.h"
#include "supervisor/cli/values.h"

namespace muster {
namespace {

// The first sentence of an option's help, for shells that show one.
std::string summary(const OptionSpec& spec) {
  std::string_view help = spec.help;
  size_t end = help.find(". ");
  if (size_t colon = help.find(": "); colon < end) end = colon;
  help = help.substr(0, end);
  if (help.ends_with('.')) help.remove_suffix(1);
  return std::string(help);
}

// `text` with `escape` before each of `special`.
std::string escaped(std::string_view text, std::string_view special, std::string_view escape) {
  std::string out;
  for (char c : text) {
    if (special.find(c) != std::string_view::npos) out += escape;
    out += c;
  }
  return out;
}

// Every way to write the option: both spellings and the short form.
std::vector<std::string> spellings(const OptionSpec& spec) {
  std::vector<std::string> all = {"--" + std::string(spec.name)};
  if (spec.destination() != spec.name) all.push_back("--" + spec.destination());
  if (spec.short_name != 0) all.push_back(std::string("-") + spec.short_name);
  return all;
}

std::string bash_values(const OptionSpec& spec) {
  switch (spec.completes) {
    case Completes::kChoices:
      return "COMPREPLY=($(compgen -W '" + join(spec.choices, " ") + "' -- \"$current\"))";
    case Completes::kFile:
      return "COMPREPLY=($(compgen -f -- \"$current\"))";
    case Completes::kDirectory:
      return "COMPREPLY=($(compgen -d -- \"$current\"))";
    case Completes::kNothing:
      break;
  }
  return "COMPREPLY=()";
}

// Options are offered until the script stands on the line; its arguments complete as files.
std::string bash_script() {
  std::vector<std::string> names;
  std::vector<std::string> with_value;
  std::string cases;
  for (const OptionSpec& spec : option_table()) {
    std::vector<std::string> ways = spellings(spec);
    names.push_back(ways.front());
    if (!spec.takes_value()) continue;
    with_value.insert(with_value.end(), ways.begin(), ways.end());
    cases += "    " + join(ways, "|") + ") " + bash_values(spec) + "; return ;;\n";
  }
  return "_muster() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} i word\n" +
         bash_commands() +
         "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
         "    word=${COMP_WORDS[i]}\n"
         "    case $word in\n"
         "    run) [ $i = 1 ] && continue ;;\n"
         "    " +
         join(with_value, "|") +
         ")\n"
         "      ((i++))\n"
         "      [ \"${COMP_WORDS[i]}\" = = ] && ((i++))\n"
         "      continue ;;\n"
         "    -*) continue ;;\n"
         "    esac\n"
         "    COMPREPLY=($(compgen -f -- \"$current\"))\n"
         "    return\n"
         "  done\n"
         "  [ \"$current\" = = ] && current=\n"
         "  [ \"$previous\" = = ] && previous=${COMP_WORDS[COMP_CWORD-2]}\n"
         "  case $previous in\n" +
         cases +
         "  esac\n"
         "  case $current in\n"
         "  -*) COMPREPLY=($(compgen -W '" +
         join(names, " ") +
         "' -- \"$current\")) ;;\n"
         "  *) COMPREPLY=($(compgen -f -- \"$current\")) ;;\n"
         "  esac\n"
         "}\n"
         "complete -o filenames -F _muster muster torchrun\n";
}

std::string zsh_values(const OptionSpec& spec) {
  std::string name = escaped(spec.value_name, ":[]'\\", "\\");
  switch (spec.completes) {
    case Completes::kChoices:
      return ":" + name + ":(" + join(spec.choices, " ") + ")";
    case Completes::kFile:
      return ":" + name + ":_files";
    case Completes::kDirectory:
      return ":" + name + ":_files -/";
    case Completes::kNothing:
      break;
  }
  return ":" + name + ": ";
}

std::string zsh_script() {
  std::string out =
      "#compdef muster torchrun\n_muster() {\n" + zsh_commands() + "  _arguments -s -S : \\\n";
  for (const OptionSpec& spec : option_table()) {
    std::string about = "[" + escaped(escaped(summary(spec), "[]:\\", "\\"), "'", "'\\'") + "]";
    for (const std::string& way : spellings(spec)) {
      bool is_short = way.size() == 2;
      std::string mark = !spec.takes_value() ? "" : is_short ? "+" : "=";
      out += "    '" + way + mark + about + (spec.takes_value() ? zsh_values(spec) : "") + "' \\\n";
    }
  }
  return out +
         "    '1:script:_files' \\\n"
         "    '*::script argument:_files'\n"
         "}\n"
         "if [ \"$funcstack[1]\" = _muster ]; then _muster \"$@\"; "
         "else compdef _muster muster torchrun; fi\n";
}

std::string tcsh_script() {
  std::vector<std::string> names;
  std::string values;
  for (const OptionSpec& spec : option_table()) {
    names.emplace_back(spec.name);
    if (!spec.takes_value()) continue;
    std::string list = spec.completes == Completes::kFile ? "f"
                       : spec.completes == Completes::kDirectory
                           ? "d"
                           : "(" + join(spec.choices, " ") + ")";
    if (list == "()") continue;
    for (const std::string& way : spellings(spec))
      values += " 'n/" + way + "/" + list + "/'";
  }
  std::string rules = values + " 'c/--/(" + join(names, " ") + ")/' 'p/*/f/'\n";
  return "complete muster" + rules + "complete torchrun" + rules;
}

std::string fish_script() {
  std::string out = "for program in muster torchrun\n";
  for (const OptionSpec& spec : option_table()) {
    out += "  complete -c $program -l " + std::string(spec.name);
    if (spec.short_name != 0) out += std::string(" -s ") + spec.short_name;
    if (spec.completes == Completes::kChoices) {
      out += " -x -a '" + join(spec.choices, " ") + "'";
    } else if (spec.completes != Completes::kNothing) {
      out += " -r -F";
    } else if (spec.takes_value()) {
      out += " -x";
    }
    out += " -d '" + escaped(summary(spec), "'\\", "\\") + "'\n";
  }
  return out + "end\n" + fish_commands();
}

}  // namespace

std::string completion_script(std::string_view shell) {
  if (shell == "zsh") return zsh_script();
  if (shell == "tcsh") return tcsh_script();
  if (shell == "fish") return fish_script();
  return bash_script();
}

}  // namespace muster
