// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "supervisor/cli/option_table.h"

namespace muster {

// Splits a command line into options by torchrun's rules, on getopt_long: both spellings of a name,
// unambiguous prefixes, `--name=value`, `-r3`, grouped short flags, and a stop at the script. The
// only file that knows getopt. One reader at a time: getopt keeps its place in globals.
class ArgumentReader {
 public:
  struct Item {
    enum class Kind {
      kOption,
      kUnknown,
      kAmbiguous,
      kMissingValue,     // the option ended the line
      kOptionAsValue,    // the value looks like an option
      kUnexpectedValue,  // a flag with "=value"
      kEnd,
    };
    Kind kind = Kind::kEnd;
    const OptionSpec* option = nullptr;  // for all but kUnknown, kAmbiguous and kEnd
    std::string value;
    std::string text;  // what was written, for messages: "--nprocx", "-x"
  };

  // `words` is what follows the program's name (and "run").
  explicit ArgumentReader(const std::vector<std::string>& words);

  Item next();

  // After kEnd: the script and its arguments, with the first "--" dropped if it stands right before
  // or right after the script.
  std::vector<std::string> rest() const;

 private:
  Item classify(int code, const std::string& word);

  std::vector<std::string> words_;
  std::vector<char*> argv_;  // into words_, which lives as long; argv_[0] is a name for getopt
};

// Names of the options that begin with `prefix`, dashes and underscores being the same.
std::vector<std::string> options_beginning_with(std::string_view prefix);

}  // namespace muster
