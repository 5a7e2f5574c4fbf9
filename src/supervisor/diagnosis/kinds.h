// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace muster {

// Whether another attempt may do better than the one that failed.
enum class Heals {
  kYes,
  kNo,
  kUnlessFirstOutput,  // not if the program had written nothing before: it fails the same way again
};

// A kind of failure (event::FailureFound::kind): a stable name, and what people are told about it
// besides what happened. docs/failures.md has the same table for people.
struct FailureKind {
  std::string_view name;
  Heals heals = Heals::kYes;
  // It is what a rank shows when another one has failed or is stuck, seldom a cause of its own.
  bool victim = false;
  std::string_view reason{};  // what the kind means, a phrase
  std::string_view hint{};    // what to look at or to try, a sentence or two
};

// All kinds, those that only the job or the coordinator can find (node_lost, hung, ...) included.
std::span<const FailureKind> failure_kinds();

// Texts and name are empty for a kind that this muster does not know, as one of --failure-rules.
const FailureKind& failure_kind(std::string_view name);

}  // namespace muster
