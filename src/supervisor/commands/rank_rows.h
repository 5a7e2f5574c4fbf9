// SPDX-License-Identifier: Apache-2.0
// Only for sources that read answers.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "supervisor/commands/text_fields.h"

namespace muster {

// The part of the status about ranks: rows of /status as lines of text.
struct RankStyle {
  bool live = true;      // the run goes on
  bool stalled = false;  // then the signs of life are told
};
// A line each, and one for those alike.
void write_ranks(TextFields& out, const nlohmann::json& ranks, const RankStyle& style);
void write_folded(TextFields& out, const nlohmann::json& ranks, const RankStyle& style);
void write_groups(TextFields& out, const nlohmann::json& groups);

// With as many digits as are worth reading: "0.93", "12.5", "3400".
std::string number_text(double number);

}  // namespace muster
