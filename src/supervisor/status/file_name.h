// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace muster {

// A part of the name of a file that a client saves: the run's id may have any character.
inline std::string plain_name(std::string_view run_id) {
  std::string name;
  for (const char c : run_id) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.';
    name += plain ? c : '_';
  }
  return name;
}

}  // namespace muster
