// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace muster {

// What people are told about a kind of stall (event::StallFound::kind): what it means and what to
// look at.
struct StallHint {
  std::string_view kind;
  std::string_view hint;
};

std::span<const StallHint> stall_hints();

// "" for a kind that this muster does not know.
std::string_view stall_hint(std::string_view kind);

}  // namespace muster
