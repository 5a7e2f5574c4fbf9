// SPDX-License-Identifier: Apache-2.0
// The table of rules: what a kind of failure is known by. The first rule that matches decides; a
// new kind, or a new text of an old one, is a new row. Inner header of the room.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/diagnosis/facts.h"

namespace muster {

// How far back a text may stand. Programs log errors that they survive, so that the more ordinary
// a text is, the nearer to the end it must be.
enum class Reach {
  kWords,     // in what the exception says that ended it, nowhere else
  kLast,      // also among the last few lines
  kNear,      // also in the last screenful
  kAnywhere,  // in all that is known of its output: nobody survives what says this
};

// Whether it shows what another rank's failure does to this one.
enum class Role { kOfKind, kCause, kVictim };

struct Rule {
  std::string_view kind;
  std::string_view text{};  // text_pattern.h
  Reach reach = Reach::kNear;
  Role role = Role::kOfKind;
  bool (*applies)(const Facts&) = nullptr;  // besides; null: always
};

// What matched.
struct Finding {
  std::string kind;
  bool victim = false;
  std::string blames;             // ranks that the text names
  std::optional<FoundLine> line;  // that shows it
  // Of a rule of the user's: what it says of it, and whether a restart may heal.
  bool own = false;
  bool by_text = true;  // false: how it ended is all that it says
  std::string reason{};
  std::string hint{};
  std::optional<bool> heals{};
};

// Rules about texts, for what ended itself: by an exit code, an exception, or abort(). In three
// files by subject, asked in this order.
std::span<const Rule> native_rules();         // sanitizers, loader, assertions, the C library
std::span<const Rule> communication_rules();  // GPUs, NCCL, gloo, the store, connections
std::span<const Rule> resource_rules();       // Python's own errors, memory, files, ports, names

// By a rule of --failure-rules, if one fits (own_rules.cc).
std::optional<Finding> find_own(const Facts& facts);

// Where a text stands in the last `max` lines that are not blank; the last place counts.
std::optional<size_t> find_in(std::string_view text, const std::vector<std::string>& lines,
                              size_t max);

// The line that shows how it ended where no text does; nullopt if only the wait status tells.
std::optional<FoundLine> line_of_end(const Facts& facts);

// The whole of it. There is always a kind.
Finding find_kind(const Facts& facts);

// The ranks that a line names as those it waited for or lost: "3", "1,2", "" if it names none.
std::string blamed_ranks(std::string_view line);

}  // namespace muster
