// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/argument_reader.h"

#include <getopt.h>

#include <algorithm>
#include <cctype>

#include "supervisor/cli/values.h"

namespace muster {
namespace {

// getopt's codes for our options: above every character.
constexpr int kFirstCode = 1000;

// What getopt_long needs, made from the option table. Both spellings of a name share one code, so
// that a prefix which fits both is not ambiguous.
struct GetoptTable {
  std::vector<std::string> names;  // owns the texts that `options` points to
  std::vector<option> options;

  explicit GetoptTable(bool torchrun_only) {
    const std::vector<OptionSpec>& table = option_table();
    names.reserve(2 * table.size());
    for (size_t i = 0; i < table.size(); ++i) {
      if (torchrun_only && !table[i].torchrun) continue;
      add(std::string(table[i].name), table[i], i);
      if (table[i].destination() != table[i].name) add(table[i].destination(), table[i], i);
    }
    options.push_back({nullptr, 0, nullptr, 0});
  }

  void add(std::string name, const OptionSpec& spec, size_t index) {
    names.push_back(std::move(name));
    int argument = spec.takes_value() ? required_argument : no_argument;
    options.push_back(
        {names.back().c_str(), argument, nullptr, kFirstCode + static_cast<int>(index)});
  }

  bool has_prefix(std::string_view prefix) const {
    return std::any_of(names.begin(), names.end(),
                       [prefix](const std::string& name) { return name.starts_with(prefix); });
  }
};

const GetoptTable& torchrun_table() {
  static const GetoptTable table(true);
  return table;
}

const GetoptTable& full_table() {
  static const GetoptTable table(false);
  return table;
}

// "+" stops at the script, ":" tells a missing value from an unknown option.
const std::string& short_options() {
  static const std::string text = [] {
    std::string out = "+:";
    for (const OptionSpec& spec : option_table()) {
      if (spec.short_name == 0) continue;
      out += spec.short_name;
      if (spec.takes_value()) out += ':';
    }
    return out;
  }();
  return text;
}

// A prefix that torchrun knows means what it means there, whatever options muster adds.
const GetoptTable& table_for(std::string_view word) {
  if (!word.starts_with("--")) return full_table();
  std::string_view name = word.substr(2, word.find('=') - 2);
  return torchrun_table().has_prefix(name) ? torchrun_table() : full_table();
}

const OptionSpec* option_of(int code) {
  const std::vector<OptionSpec>& table = option_table();
  if (code >= kFirstCode && code < kFirstCode + static_cast<int>(table.size())) {
    return &table[static_cast<size_t>(code - kFirstCode)];
  }
  for (const OptionSpec& spec : table) {
    if (spec.short_name != 0 && spec.short_name == code) return &spec;
  }
  return nullptr;
}

// argparse's rule: numbers and words with a blank are values although they begin with '-'.
bool looks_like_option(std::string_view value) {
  if (value.size() < 2 || value.front() != '-') return false;
  if (value.find(' ') != std::string_view::npos) return false;
  return !parse_double(value) && !parse_int(value);
}

}  // namespace

ArgumentReader::ArgumentReader(const std::vector<std::string>& words) : words_(words) {
  words_.insert(words_.begin(), "muster");
  for (std::string& word : words_)
    argv_.push_back(word.data());
  argv_.push_back(nullptr);
  optind = 0;  // glibc: forget everything about an earlier command line
  opterr = 0;
}

ArgumentReader::Item ArgumentReader::next() {
  size_t at = optind == 0 ? 1 : static_cast<size_t>(optind);
  std::string word = at < words_.size() ? words_[at] : "";
  optopt = 0;
  int code = getopt_long(static_cast<int>(words_.size()), argv_.data(), short_options().c_str(),
                         table_for(word).options.data(), nullptr);
  if (code == -1) return {};
  return classify(code, word);
}

ArgumentReader::Item ArgumentReader::classify(int code, const std::string& word) {
  Item item;
  bool is_long = word.starts_with("--");
  std::string name = word.substr(0, word.find('='));
  bool failed = code == '?' || code == ':';
  item.option = option_of(failed ? optopt : code);
  item.text = is_long ? name : std::string("-") + static_cast<char>(failed ? optopt : code);
  if (code == ':') {
    item.kind = Item::Kind::kMissingValue;
  } else if (code == '?' && item.option != nullptr) {
    item.kind = Item::Kind::kUnexpectedValue;
  } else if (code == '?') {
    bool ambiguous = is_long && options_beginning_with(name.substr(2)).size() > 1;
    item.kind = ambiguous ? Item::Kind::kAmbiguous : Item::Kind::kUnknown;
  } else {
    item.kind = Item::Kind::kOption;
    if (optarg == nullptr) return item;
    item.value = optarg;
    bool separate = optarg == argv_[static_cast<size_t>(optind) - 1];
    if (separate && looks_like_option(item.value)) item.kind = Item::Kind::kOptionAsValue;
    if (!separate && !is_long && item.value.starts_with('=')) item.value.erase(0, 1);
  }
  return item;
}

std::vector<std::string> ArgumentReader::rest() const {
  size_t at = optind == 0 ? 1 : static_cast<size_t>(optind);
  at = std::min(at, words_.size());
  bool dropped = at > 1 && words_[at - 1] == "--";
  std::vector<std::string> rest(words_.begin() + static_cast<ptrdiff_t>(at), words_.end());
  if (!dropped && rest.size() > 1 && rest[1] == "--") rest.erase(rest.begin() + 1);
  return rest;
}

std::vector<std::string> options_beginning_with(std::string_view prefix) {
  std::string wanted(prefix);
  std::replace(wanted.begin(), wanted.end(), '_', '-');
  std::vector<std::string> names;
  for (const OptionSpec& spec : option_table()) {
    if (spec.name.starts_with(wanted)) names.emplace_back(spec.name);
  }
  return names;
}

}  // namespace muster
