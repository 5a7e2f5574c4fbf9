// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/rules.h"

#include <errno.h>
#include <signal.h>

#include <algorithm>
#include <iterator>

#include "supervisor/diagnosis/evidence_lines.h"
#include "supervisor/diagnosis/kinds.h"
#include "supervisor/diagnosis/text_lines.h"
#include "supervisor/diagnosis/text_pattern.h"

namespace muster {

namespace {

constexpr size_t kLastLines = 6;   // Reach::kLast, lines that are not blank
constexpr size_t kNearLines = 60;  // Reach::kNear

// --- How it ended --------------------------------------------------------------------------------

template <int... kCodes>
bool spawn_failed_with(const Facts& facts) {
  return ((facts.evidence.spawn_errno == kCodes) || ...);
}

bool spawn_failed(const Facts& facts) {
  return !facts.started();
}

template <int kSignal>
bool died_of(const Facts& facts) {
  return facts.started() && facts.status.signal == kSignal;
}

bool died_of_signal(const Facts& facts) {
  return facts.started() && facts.status.signal != 0;
}

// Also of a child: a shell exits with 128 + n when its command dies of a signal.
bool killed_for_memory(const Facts& facts) {
  const bool by_kill = facts.status.signal == SIGKILL || facts.status.exit_code == 128 + SIGKILL;
  return facts.started() && by_kill && memory_line(facts.evidence).has_value();
}

// A process under it was killed, and it says so. (Another rank's may have been, where the limit is
// one for all of them, so that the counter alone is not enough.)
bool child_killed_for_memory(const Facts& facts) {
  const std::optional<FoundLine> line = memory_line(facts.evidence);
  if (!line || !facts.exited()) return false;
  if (line->source == "kernel log") return true;
  for (std::string_view text : {"137", "SIGKILL", "Killed", "signal 9"}) {
    if (find_in(text, facts.stderr_lines, kLastLines)) return true;
  }
  return false;
}

// /dev/shm, if it has no room.
const FullDisk* full_shared_memory(const Facts& facts) {
  const std::vector<FullDisk>& full = facts.evidence.full_disks;
  auto found = std::find_if(full.begin(), full.end(),
                            [](const FullDisk& disk) { return disk.path.starts_with("/dev/shm"); });
  return found == full.end() ? nullptr : &*found;
}

bool shared_memory_full(const Facts& facts) {
  return died_of<SIGBUS>(facts) && full_shared_memory(facts) != nullptr;
}

bool raised(const Facts& facts) {
  return facts.raised() || facts.raised_aside();
}

bool recorded_native_exception(const Facts& facts) {
  return !raised(facts) && facts.recorded_exception() && facts.error_file->native();
}

bool recorded_exception(const Facts& facts) {
  return facts.recorded_exception();
}

bool terminated(const Facts& facts) {
  return facts.aborted_by_exception() && !facts.terminate->type.empty();
}

// What needs no text, and goes before all texts.
constexpr Rule kEndsByForce[] = {
    {"exec_not_found", "", Reach::kNear, Role::kCause,
     spawn_failed_with<ENOENT, ENOTDIR, ENAMETOOLONG>},
    {"exec_denied", "", Reach::kNear, Role::kCause, spawn_failed_with<EACCES, EPERM>},
    {"exec_bad_format", "", Reach::kNear, Role::kCause,
     spawn_failed_with<ENOEXEC, ELIBBAD, EINVAL>},
    {"spawn_failed", "", Reach::kNear, Role::kCause, spawn_failed},
    {"oom_kill", "", Reach::kNear, Role::kCause, killed_for_memory},
    {"killed", "", Reach::kNear, Role::kCause, died_of<SIGKILL>},
    {"terminated", "", Reach::kNear, Role::kCause, died_of<SIGTERM>},
    {"hangup", "", Reach::kNear, Role::kCause, died_of<SIGHUP>},
    {"interrupted", "", Reach::kNear, Role::kCause, died_of<SIGINT>},
    {"disk_full", "", Reach::kNear, Role::kCause, shared_memory_full},
    {"segfault", "", Reach::kNear, Role::kCause, died_of<SIGSEGV>},
    {"bus_error", "", Reach::kNear, Role::kCause, died_of<SIGBUS>},
    {"fpe", "", Reach::kNear, Role::kCause, died_of<SIGFPE>},
    {"illegal_instruction", "", Reach::kNear, Role::kCause, died_of<SIGILL>},
};

// What is left when no text said more.
constexpr Rule kOtherEnds[] = {
    {"oom_kill", "", Reach::kNear, Role::kCause, child_killed_for_memory},
    {"cpp_exception", "", Reach::kNear, Role::kCause, recorded_native_exception},
    {"python_exception", "", Reach::kNear, Role::kCause, raised},
    {"python_exception", "", Reach::kNear, Role::kCause, recorded_exception},
    {"cpp_exception", "", Reach::kNear, Role::kCause, terminated},
    {"abort", "", Reach::kNear, Role::kCause, died_of<SIGABRT>},
    {"signal", "", Reach::kNear, Role::kCause, died_of_signal},
    {"exit_code"},
};

// --- Texts ---------------------------------------------------------------------------------------

Finding finding(const Rule& rule, FoundLine line) {
  Finding found;
  found.kind = rule.kind;
  found.victim =
      rule.role == Role::kOfKind ? failure_kind(rule.kind).victim : rule.role == Role::kVictim;
  found.line = std::move(line);
  return found;
}

size_t lines_of(Reach reach) {
  switch (reach) {
    case Reach::kWords:
      return 0;
    case Reach::kLast:
      return kLastLines;
    case Reach::kNear:
      return kNearLines;
    case Reach::kAnywhere:
      break;
  }
  return std::string::npos;
}

// A traceback's own lines stand in stderr; where they do is not known, and not needed.
std::optional<Finding> in_last_words(const Rule& rule, const Facts& facts) {
  for (size_t i = 0; i < facts.last_words.size(); ++i) {
    if (match_text(rule.text, facts.last_words[i])) return finding(rule, facts.last_word_lines[i]);
  }
  return std::nullopt;
}

// What began the chain of exceptions, if the last of them says nothing special.
std::optional<Finding> in_first_cause(const Rule& rule, const Facts& facts) {
  const std::string& cause = facts.traceback->cause;
  if (!match_text(rule.text, cause)) return std::nullopt;
  // Its first line alone, where its text goes on in the next.
  const std::string* first = nullptr;
  for (const std::string& line : facts.traceback->lines) {
    if (line.find(cause) != std::string::npos) return finding(rule, {line, "stderr"});
    const bool begins_it = line.find(": ") != std::string::npos || line.ends_with(':');
    if (first == nullptr && begins_it && cause.starts_with(line)) first = &line;
  }
  return finding(rule, {first != nullptr ? *first : cause, "stderr"});
}

std::optional<Finding> in_output(const Rule& rule, const Facts& facts) {
  const size_t max = lines_of(rule.reach);
  if (auto at = find_in(rule.text, facts.stderr_lines, max)) {
    return finding(rule, {facts.stderr_lines[*at], "stderr", *at});
  }
  if (auto at = find_in(rule.text, facts.stdout_lines, max)) {
    return finding(rule, {facts.stdout_lines[*at], "stdout"});
  }
  return std::nullopt;
}

using Search = std::optional<Finding> (*)(const Rule&, const Facts&);

std::optional<Finding> first_of(const Facts& facts, Search search) {
  for (std::span<const Rule> rules : {native_rules(), communication_rules(), resource_rules()}) {
    for (const Rule& rule : rules) {
      if (rule.applies != nullptr && !rule.applies(facts)) continue;
      if (auto found = search(rule, facts)) return found;
    }
  }
  return std::nullopt;
}

// An exception says why it ended; without one the end of its output does.
std::optional<Finding> find_text(const Facts& facts) {
  if (facts.last_words.empty()) return first_of(facts, in_output);
  std::optional<Finding> found = first_of(facts, in_last_words);
  std::optional<Finding> cause;
  if (raised(facts) && !facts.traceback->cause.empty()) cause = first_of(facts, in_first_cause);
  // Of a data loader the first one says more: "is killed by signal: Killed", then "exited".
  const bool begins_it =
      cause && (!found || (found->kind == "data_worker_died" && cause->kind == found->kind));
  return begins_it ? cause : found;
}

// --- Ends ----------------------------------------------------------------------------------------

std::optional<FoundLine> line_for(std::string_view kind, const Facts& facts) {
  if (kind == "oom_kill") return memory_line(facts.evidence);
  if (kind == "disk_full") return FoundLine{disk_line(*full_shared_memory(facts)), "disk"};
  return line_of_end(facts);
}

std::optional<Finding> find_end(std::span<const Rule> rules, const Facts& facts) {
  for (const Rule& rule : rules) {
    if (rule.applies != nullptr && !rule.applies(facts)) continue;
    Finding found;
    found.kind = rule.kind;
    if (facts.started()) found.line = line_for(rule.kind, facts);
    return found;
  }
  return std::nullopt;
}

// --- Whom it blames ------------------------------------------------------------------------------

void read_blames(const Facts& facts, Finding& found) {
  if (!found.victim) return;
  auto look_at = [&](std::string_view line) {
    if (found.blames.empty()) found.blames = blamed_ranks(line);
    if (found.blames == std::to_string(facts.evidence.rank)) found.blames.clear();
  };
  for (const std::string& words : facts.last_words)
    look_at(words);
  if (found.line) look_at(found.line->text);
  const std::vector<std::string>& lines = facts.stderr_lines;
  for (size_t i = lines.size() - std::min(lines.size(), kNearLines); i < lines.size(); ++i)
    look_at(lines[i]);
}

// A GPU that fails shows as an error of CUDA or NCCL, or as a crash; the kernel's log knows.
void read_gpu_fault(const Facts& facts, Finding& found) {
  const bool may_be = found.kind == "cuda_error" || found.kind == "nccl_error" ||
                      found.kind == "nccl_timeout" || found.kind == "abort" ||
                      found.kind == "bus_error" || found.kind == "segfault";
  std::optional<FoundLine> line = may_be ? gpu_fault_line(facts.evidence) : std::nullopt;
  if (!line) return;
  found.kind = "gpu_fault";
  found.victim = false;
  found.line = std::move(line);
}

}  // namespace

std::optional<size_t> find_in(std::string_view text, const std::vector<std::string>& lines,
                              size_t max) {
  for (size_t i = lines.size(); i-- > 0 && max > 0;) {
    if (is_blank(lines[i])) continue;
    --max;
    if (match_text(text, lines[i])) return i;
  }
  return std::nullopt;
}

Finding find_kind(const Facts& facts) {
  std::optional<Finding> found = find_own(facts);
  if (!found) found = find_end(kEndsByForce, facts);
  if (!found) found = find_text(facts);
  if (!found) found = find_end(kOtherEnds, facts);
  if (!found->own) read_gpu_fault(facts, *found);
  // The worker library says so of a communicator that another rank's failure ended.
  if (facts.exited() && facts.error_file && facts.error_file->comm_error == "aborted")
    found->victim = true;
  read_blames(facts, *found);
  return std::move(*found);
}

}  // namespace muster
