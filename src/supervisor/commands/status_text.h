// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "loop/result.h"

namespace muster {

// What GET /status answers, for people. Pure.
struct StatusStyle {
  bool colour = false;
  bool each_rank = false;  // a row for each rank that is told, instead of folding those alike
};

struct StatusText {
  std::vector<std::string> lines;  // the job first, then its failure, then the rest
  std::string headline;            // the first of them, without colour
  std::string change;              // differs whenever the job is in another condition
  bool bad = false;                // the job failed, was stopped or killed, or makes no progress
  bool over = false;
};
Result<StatusText> status_text(std::string_view json, const StatusStyle& style);

// "812 B", "2.1 GB"
std::string size_text(int64_t bytes);

}  // namespace muster
