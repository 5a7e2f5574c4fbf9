// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/environment.h"

#include <unistd.h>

#include <algorithm>

namespace muster {
namespace {

bool names(std::string_view line, std::string_view name) {
  return line.size() > name.size() && line[name.size()] == '=' && line.starts_with(name);
}

}  // namespace

Environment current_environment() {
  Environment environment;
  for (char** line = environ; line != nullptr && *line != nullptr; ++line) {
    environment.emplace_back(*line);
  }
  return environment;
}

std::optional<std::string> lookup(const Environment& environment, std::string_view name) {
  for (const std::string& line : environment) {
    if (names(line, name)) return line.substr(name.size() + 1);
  }
  return std::nullopt;
}

void set_variable(Environment& environment, std::string_view name, std::string_view value) {
  std::string line = std::string(name) + "=" + std::string(value);
  auto is_it = [name](const std::string& other) { return names(other, name); };
  auto at = std::find_if(environment.begin(), environment.end(), is_it);
  if (at == environment.end()) {
    environment.push_back(std::move(line));
    return;
  }
  *at = std::move(line);
  environment.erase(std::remove_if(at + 1, environment.end(), is_it), environment.end());
}

void remove_variable(Environment& environment, std::string_view name) {
  environment.erase(std::remove_if(environment.begin(), environment.end(),
                                   [name](const std::string& line) { return names(line, name); }),
                    environment.end());
}

}  // namespace muster
