// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/command_parse.h"

#include <getopt.h>

#include <algorithm>

#include "supervisor/cli/command_table.h"
#include "supervisor/cli/suggest.h"

namespace muster {

namespace {

// getopt's codes for our options: above every character.
constexpr int kFirstCode = 1000;
constexpr int kHelpCode = 999;

constexpr int64_t kMaxFollowTail = 5'000;  // as the API has it

// What getopt needs. The names are literals of the table.
struct GetoptTable {
  std::vector<option> options;
  std::string shorts = ":h";

  explicit GetoptTable(const CommandSpec& spec) {
    for (size_t i = 0; i < spec.options.size(); ++i) {
      const CommandOption& entry = spec.options[i];
      const int argument = entry.takes_value() ? required_argument : no_argument;
      options.push_back({entry.name.data(), argument, nullptr, kFirstCode + static_cast<int>(i)});
      if (entry.short_name == 0) continue;
      shorts += entry.short_name;
      if (entry.takes_value()) shorts += ':';
    }
    options.push_back({"help", no_argument, nullptr, kHelpCode});
    options.push_back({nullptr, 0, nullptr, 0});
  }
};

EarlyExit usage_error(const CommandSpec& spec, const std::string& message) {
  const std::string name(spec.name);
  return {2, "",
          "muster: " + name + ": " + message + "\nmuster: muster " + name +
              " --help shows how it is used\n"};
}

const CommandOption* option_of(const CommandSpec& spec, int code) {
  for (size_t i = 0; i < spec.options.size(); ++i) {
    const CommandOption& entry = spec.options[i];
    if (code == kFirstCode + static_cast<int>(i)) return &entry;
    if (entry.short_name != 0 && code == entry.short_name) return &entry;
  }
  return nullptr;
}

std::string unknown_option(const CommandSpec& spec, const std::string& word) {
  std::vector<std::string> names;
  for (const CommandOption& entry : spec.options)
    names.emplace_back(entry.name);
  const std::string bare = word.substr(std::min(word.find_first_not_of('-'), word.size()));
  const std::string near = word.starts_with("--") ? nearest(bare, names) : "";
  return "there is no option " + word + (near.empty() ? "" : " (did you mean --" + near + "?)");
}

// What getopt complains about. `word` is what it read.
std::string complaint(const CommandSpec& spec, int code, const std::string& word) {
  const CommandOption* entry = option_of(spec, optopt);
  if (code == ':' && entry != nullptr) {
    return "--" + std::string(entry->name) + " expects " + std::string(entry->value_name);
  }
  if (entry != nullptr) return "--" + std::string(entry->name) + " takes no value";
  if (word.starts_with("--")) return unknown_option(spec, word.substr(0, word.find('=')));
  return unknown_option(spec, std::string("-") + static_cast<char>(optopt));
}

std::string take_value(CommandOptions& options, const CommandOption& entry) {
  const std::string value = entry.takes_value() ? optarg : "";
  Result<void> set = entry.set(options, value);
  if (set) return "";
  return "--" + std::string(entry.name) + " '" + value + "': " + set.error().message;
}

// What only makes sense together, or alone.
std::string check_together(const CommandOptions& options) {
  if (options.raw && options.json) return "--raw and --json exclude each other";
  if (options.raw && !options.grep.empty()) return "--raw and --grep exclude each other";
  if (options.raw && options.follow) return "--raw and --follow exclude each other";
  if ((options.tail || options.tail_all) && options.since_us)
    return "--tail and --since exclude each other";
  if (options.tail && !options.grep.empty() && !options.follow) {
    return "--tail and --grep exclude each other, unless --follow is given";
  }
  if (options.follow && options.tail.value_or(0) > kMaxFollowTail) {
    return "--follow begins with at most " + std::to_string(kMaxFollowTail) +
           " lines of each log, or with all";
  }
  if (options.all_attempts && options.follow) return "--follow begins with one attempt, not all";
  if (options.watch && options.json) return "--watch is for people; --json for programs, once";
  if (options.grep.empty() && (options.fixed || options.ignore_case || options.context > 0)) {
    return "--fixed, --ignore-case and --context are about --grep, which is missing";
  }
  return "";
}

ParsedCommand parse_words(const CommandSpec& spec, std::vector<std::string> words) {
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  const GetoptTable table(spec);
  CommandOptions options;
  options.command = spec.command;
  optind = 0;  // glibc: forget everything about an earlier command line
  opterr = 0;
  for (;;) {
    optopt = 0;
    const int code = getopt_long(static_cast<int>(words.size()), argv.data(), table.shorts.c_str(),
                                 table.options.data(), nullptr);
    if (code == -1) break;
    if (code == 'h' || code == kHelpCode) return EarlyExit{0, command_help(spec), ""};
    const CommandOption* entry = option_of(spec, code);
    // What it read last stands before where it goes on.
    const std::string wrong = entry == nullptr
                                  ? complaint(spec, code, argv[static_cast<size_t>(optind) - 1])
                                  : take_value(options, *entry);
    if (!wrong.empty()) return usage_error(spec, wrong);
  }
  const auto rest = static_cast<size_t>(optind);
  if (rest + 1 < words.size()) {
    return usage_error(spec, std::string("one run at a time, but there is '") + argv[rest + 1] +
                                 "' besides '" + argv[rest] + "'");
  }
  if (rest < words.size()) options.run = argv[rest];
  if (const std::string wrong = check_together(options); !wrong.empty()) {
    return usage_error(spec, wrong);
  }
  return options;
}

}  // namespace

std::optional<ParsedCommand> parse_command(const std::vector<std::string>& argv) {
  if (argv.size() < 2) return std::nullopt;
  if (argv[0].substr(argv[0].rfind('/') + 1) == "torchrun") return std::nullopt;
  const CommandSpec* spec = find_command(argv[1]);
  if (spec == nullptr) return std::nullopt;
  return parse_words(*spec, {argv.begin() + 1, argv.end()});
}

}  // namespace muster
