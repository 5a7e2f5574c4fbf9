// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <stdexcept>
#include <string>

namespace mlp {

// "--name value" pairs; each has a default, and others are refused.
class Options {
 public:
  Options(int argc, char** argv, std::map<std::string, std::string> defaults)
      : values_(std::move(defaults)) {
    for (int i = 1; i < argc; i += 2) {
      const std::string name(argv[i]);
      const auto found = name.starts_with("--") ? values_.find(name.substr(2)) : values_.end();
      if (found == values_.end() || i + 1 == argc) throw std::invalid_argument(usage(name));
      found->second = argv[i + 1];
    }
  }
  const std::string& text(const std::string& name) const { return values_.at(name); }
  long number(const std::string& name) const { return std::stol(text(name)); }
  double real(const std::string& name) const { return std::stod(text(name)); }

 private:
  std::string usage(const std::string& wrong) const {
    std::string text = "cannot use " + wrong + "; there are:";
    for (const auto& [name, value] : values_)
      text += " --" + name + " [" + value + "]";
    return text;
  }
  std::map<std::string, std::string> values_;
};

}  // namespace mlp
