// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/parse.h"

#include <algorithm>

#include "supervisor/cli/argument_reader.h"
#include "supervisor/cli/completion.h"
#include "supervisor/cli/help.h"
#include "supervisor/cli/option_setters.h"
#include "supervisor/cli/option_table.h"
#include "supervisor/cli/rendezvous_options.h"
#include "supervisor/cli/suggest.h"
#include "supervisor/cli/values.h"

namespace muster {
namespace {

using Item = ArgumentReader::Item;

constexpr const char* kShutdownVariable = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT";
constexpr const char* kPrefixVariable = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE";

EarlyExit usage_error(const std::string& message) {
  return {2, "", usage_line() + "muster: " + message + "\nmuster: --help lists all options\n"};
}

std::string quoted(std::string_view text) {
  return "'" + std::string(text) + "'";
}

std::string unknown_message(const std::string& text) {
  if (text == "--use-env" || text == "--use_env") {
    return text +
           " belongs to the deprecated torch.distributed.launch; here LOCAL_RANK is always " +
           "in the environment: leave the option out";
  }
  std::vector<std::string> names;
  for (const OptionSpec& spec : option_table())
    names.emplace_back(spec.name);
  std::string word = text.substr(std::min(text.find_first_not_of('-'), text.size()));
  std::replace(word.begin(), word.end(), '_', '-');
  std::string message = "unrecognized arguments: " + text;
  std::string near = nearest(word, names);
  return near.empty() ? message : message + " (did you mean --" + near + "?)";
}

std::string ambiguous_message(const std::string& text) {
  std::string candidates;
  for (const std::string& name : options_beginning_with(text.substr(2))) {
    candidates += (candidates.empty() ? "--" : ", --") + name;
  }
  return "ambiguous option: " + text + " could be " + candidates;
}

std::string item_message(const Item& item) {
  std::string name = item.option != nullptr ? "--" + std::string(item.option->name) : "";
  switch (item.kind) {
    case Item::Kind::kMissingValue:
      return name + ": expected one argument, " + std::string(item.option->value_name);
    case Item::Kind::kOptionAsValue:
      return name + ": expected one argument, but " + quoted(item.value) +
             " looks like an option; if it is meant, write " + name + "=" + item.value;
    case Item::Kind::kUnexpectedValue:
      return name + " is a flag and takes no value";
    case Item::Kind::kAmbiguous:
      return ambiguous_message(item.text);
    default:
      return unknown_message(item.text);
  }
}

// Checks and stores one value. The message is without the option's name.
Result<void> store(Options& options, const OptionSpec& spec, const std::string& value) {
  bool known = std::find(spec.choices.begin(), spec.choices.end(), value) != spec.choices.end();
  if (spec.only_choices && !known) {
    std::string near = nearest(value, spec.choices);
    return Error{0, "expected one of " + join(spec.choices, ", ") +
                        (near.empty() ? "" : " (did you mean " + near + "?)")};
  }
  if (spec.set == nullptr) return {};
  if (Result<void> set = spec.set(options, value); !set) return set;
  if (spec.takes_value() || value == "true") options.given.insert(spec.destination());
  return {};
}

std::optional<EarlyExit> act(const OptionSpec& spec, const std::string& value) {
  switch (spec.action) {
    case OptionAction::kHelp:
      return EarlyExit{0, help_text(), ""};
    case OptionAction::kVersion:
      return EarlyExit{0, version_text(), ""};
    case OptionAction::kCompletion:
      return EarlyExit{0, completion_script(value), ""};
    case OptionAction::kSet:
      break;
  }
  return std::nullopt;
}

std::optional<EarlyExit> read_arguments(ArgumentReader& reader, Options& options) {
  for (;;) {
    Item item = reader.next();
    if (item.kind == Item::Kind::kEnd) return std::nullopt;
    if (item.kind != Item::Kind::kOption) return usage_error(item_message(item));
    const OptionSpec& spec = *item.option;
    std::string value = spec.takes_value() ? item.value : "true";
    if (Result<void> done = store(options, spec, value); !done) {
      return usage_error("--" + std::string(spec.name) + " " + quoted(value) + ": " +
                         done.error().message);
    }
    if (std::optional<EarlyExit> exit = act(spec, value)) return exit;
  }
}

// PET_ variables, for what the command line did not give.
Result<void> read_environment(const Environment& environment, Options& options) {
  for (const OptionSpec& spec : option_table()) {
    if (!spec.environment || options.was_given(spec.destination())) continue;
    std::optional<std::string> value = lookup(environment, spec.variable());
    if (!value) continue;
    std::string context =
        spec.variable() + "=" + *value + " (the default of --" + std::string(spec.name) + "): ";
    if (value->empty()) context = spec.variable() + " is set to an empty text: ";
    if (!spec.takes_value()) {
      std::optional<bool> flag = parse_bool(*value);
      if (!flag) return Error{0, context + "--" + std::string(spec.name) + " expects 1 or 0"};
      value = *flag ? "true" : "false";
    }
    if (Result<void> done = store(options, spec, *value); !done) {
      return Error{0, context + "--" + std::string(spec.name) + ": " + done.error().message};
    }
  }
  return {};
}

// The variables that are not PET_ ones but have an option of the same meaning.
Result<void> read_elastic_variables(const Environment& environment, Options& options) {
  std::optional<std::string> timeout = lookup(environment, kShutdownVariable);
  if (timeout && !options.was_given("shutdown_timeout")) {
    if (Result<void> done = setters::shutdown_timeout(options, *timeout); !done) {
      return Error{0,
                   std::string(kShutdownVariable) + "=" + *timeout + ": " + done.error().message};
    }
  }
  if (options.log_line_prefix_template.empty()) {
    options.log_line_prefix_template = lookup(environment, kPrefixVariable).value_or("");
  }
  return {};
}

Result<void> take_script(std::vector<std::string> rest, Options& options) {
  if (rest.empty()) {
    return Error{0, "the following arguments are required: training_script (what to run)"};
  }
  if (rest.front().empty()) return Error{0, "the script's name is empty"};
  options.script = std::move(rest.front());
  options.script_args.assign(std::make_move_iterator(rest.begin() + 1),
                             std::make_move_iterator(rest.end()));
  if (options.no_python && options.module && !options.run_path) {
    return Error{0, "--no-python and --module exclude each other: a module needs Python"};
  }
  return {};
}

}  // namespace

Parsed parse(const std::vector<std::string>& argv, const Environment& environment) {
  std::vector<std::string> words;
  if (!argv.empty()) words.assign(argv.begin() + 1, argv.end());
  if (!words.empty() && words.front() == "run") words.erase(words.begin());
  Options options;
  ArgumentReader reader(words);
  if (std::optional<EarlyExit> exit = read_arguments(reader, options)) return *exit;
  std::vector<std::string> rest = reader.rest();
  Result<void> done = read_environment(environment, options);
  if (done) done = read_elastic_variables(environment, options);
  if (done) done = check_rendezvous(options);
  if (done) done = take_script(std::move(rest), options);
  if (!done) return usage_error(done.error().message);
  return options;
}

}  // namespace muster
