// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace muster {

// What people are told about a kind of failure (event::FailureFound::kind) besides what happened.
struct Advice {
  std::string_view kind;
  std::string_view reason;  // what the kind means, a phrase
  std::string_view hint;    // what to look at or to try, a sentence or two
};

// Texts are empty for a kind that this muster does not know.
const Advice& advice_for(std::string_view kind);

}  // namespace muster
