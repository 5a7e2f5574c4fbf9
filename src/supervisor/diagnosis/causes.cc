// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/causes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "supervisor/cli/ranges.h"
#include "supervisor/diagnosis/text_lines.h"
#include "supervisor/diagnosis/wait_status.h"

namespace muster {

namespace {

constexpr size_t kMaxMessage = 400;      // characters
constexpr size_t kMaxVictimsQuoted = 3;  // as evidence of what they waited for
constexpr size_t kMaxWaiting = 100'000;  // ranks of one operation that are looked at
constexpr std::string_view kHung = "hung";
constexpr std::string_view kFinishedEarly = "finished_early";

bool is_one_of(std::string_view kind, std::initializer_list<std::string_view> kinds) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

// It had waited for others, and its time was up.
bool gave_up_waiting(const event::FailureFound& failure) {
  return failure.comm_error == "timeout" ||
         is_one_of(failure.kind, {"store_timeout", "collective_timeout", "nccl_timeout"});
}

// The same, where every rank has to come.
bool gave_up_on_all(const event::FailureFound& failure) {
  return gave_up_waiting(failure) && failure.kind != "store_timeout";
}

// What it lost takes all ranks of the job, so that any one of them may be missed.
bool of_the_job(const event::FailureFound& failure) {
  return gave_up_waiting(failure) || !failure.comm_error.empty() ||
         is_one_of(failure.kind, {"gloo_error", "nccl_error"});
}

std::string ranks_text(std::vector<int> ranks) {
  const std::string text = format_ranges(std::move(ranks), ", ");
  const bool one = text.find_first_of(",-") == std::string::npos;
  return (one ? "rank " : "ranks ") + text;
}

class Finder {
 public:
  explicit Finder(AttemptEnds ends) : ends_(std::move(ends)) {
    for (size_t i = 0; i < ends_.failures.size(); ++i)
      failure_at_.emplace(ends_.failures[i].rank, i);
    for (size_t i = 0; i < ends_.stopped.size(); ++i)
      stopped_at_.emplace(ends_.stopped[i].rank, i);
  }

  Causes find() {
    for (size_t i = 0; i < ends_.failures.size(); ++i) {
      if (!shows_victim(ends_.failures[i])) causes_.push_back({i, ends_.failures[i], {}});
    }
    for (size_t i = 0; i < ends_.failures.size(); ++i) {
      if (shows_victim(ends_.failures[i])) follow(i);
    }
    if (causes_.empty()) suspect_without_blame();
    return sorted();
  }

 private:
  struct Cause {
    size_t from = 0;  // the failure from whose time on it counts
    event::FailureFound failure;
    std::vector<size_t> blamed_by;  // failures, if it is known only by them
  };

  // Whom the victim points to in the end.
  void follow(size_t victim) {
    std::set<int> seen = {ends_.failures[victim].rank};
    std::vector<int> open = parse_ranges(ends_.failures[victim].blames, kMaxBlamed);
    while (!open.empty()) {
      const int rank = open.back();
      open.pop_back();
      if (!seen.insert(rank).second) continue;
      const auto at = failure_at_.find(rank);
      if (at == failure_at_.end() || !shows_victim(ends_.failures[at->second])) {
        blame(rank, victim);
        continue;
      }
      for (int next : parse_ranges(ends_.failures[at->second].blames, kMaxBlamed))
        open.push_back(next);
    }
  }

  void blame(int rank, size_t victim) {
    for (Cause& cause : causes_) {
      if (cause.failure.rank != rank) continue;
      cause.from = std::min(cause.from, victim);
      if (!cause.blamed_by.empty()) cause.blamed_by.push_back(victim);
      return;
    }
    const event::FailureFound& shown = ends_.failures[victim];
    const auto at = stopped_at_.find(rank);
    if (at != stopped_at_.end()) {
      const event::FailureFound& stopped = ends_.stopped[at->second];
      if (!stopped.kind.empty()) {
        causes_.push_back({victim, stopped, {}});
      } else if (gave_up_waiting(shown)) {
        causes_.push_back({victim, made_up(stopped, kHung, shown), {victim}});
      }
    } else if (std::binary_search(ends_.finished.begin(), ends_.finished.end(), rank)) {
      event::FailureFound finished;
      finished.rank = rank;
      causes_.push_back({victim, made_up(finished, kFinishedEarly, shown), {victim}});
    }
  }

  void suspect_without_blame() {
    const auto shown = std::find_if(ends_.stopped.begin(), ends_.stopped.end(),
                                    [](const event::FailureFound& f) { return !f.kind.empty(); });
    if (ends_.failures.empty()) return;
    const event::FailureFound& first = ends_.failures.front();
    if (shown != ends_.stopped.end()) {
      causes_.push_back({0, *shown, {}});
    } else if (!ends_.finished.empty() && of_the_job(first)) {
      event::FailureFound finished;
      finished.rank = ends_.finished.front();
      causes_.push_back({0, made_up(finished, kFinishedEarly, first), {0}});
    } else if (ends_.still_running == 1 && ends_.stopped.size() == 1 && only_one_missed(first)) {
      causes_.push_back({0, made_up(ends_.stopped.front(), kHung, first), {0}});
    } else {
      causes_.push_back({0, first, {}});
    }
  }

  // Whether whoever has not given up is the one that was waited for. A key may be anybody's, but
  // all others would not wait for one of their own.
  bool only_one_missed(const event::FailureFound& first) const {
    const std::vector<event::FailureFound>& failures = ends_.failures;
    return gave_up_on_all(first) ||
           (failures.size() > 1 && ends_.finished.empty() &&
            std::all_of(failures.begin(), failures.end(), gave_up_waiting));
  }

  // A failure that only its victims tell of. They have the exit code that everybody saw.
  static event::FailureFound made_up(event::FailureFound known, std::string_view kind,
                                     const event::FailureFound& victim) {
    known.kind = kind;
    known.attempt = victim.attempt;
    known.signal = 0;
    known.exit_code = victim.exit_code;
    known.can_heal = victim.can_heal;
    return known;
  }

  // Once all who blame it are known.
  void explain(Cause& cause) const {
    if (cause.blamed_by.empty()) return;
    std::vector<int> ranks;
    for (size_t victim : cause.blamed_by)
      ranks.push_back(ends_.failures[victim].rank);
    const std::string who = ranks_text(ranks);
    event::FailureFound& failure = cause.failure;
    const std::string_view first = ends_.failures[cause.blamed_by.front()].message;
    failure.message = failure.kind == kHung ? "still running, but " + who + " waited for it in vain"
                                            : "ended with code 0, but " + who + " still needed it";
    failure.message = cut_line(failure.message + ": " + std::string(first), kMaxMessage);
    for (size_t i = 0; i < std::min(cause.blamed_by.size(), kMaxVictimsQuoted); ++i) {
      const event::FailureFound& victim = ends_.failures[cause.blamed_by[i]];
      const std::string& line = victim.line.empty() ? victim.message : victim.line;
      std::string text = "rank " + std::to_string(victim.rank);
      if (!victim.line_source.empty()) text += ", " + victim.line_source;
      failure.evidence.push_back(cut_line(text + ": " + line, kMaxMessage));
    }
  }

  Causes sorted() {
    std::stable_sort(causes_.begin(), causes_.end(),
                     [](const Cause& a, const Cause& b) { return a.from < b.from; });
    Causes found;
    std::set<int> guilty;
    for (Cause& cause : causes_) {
      explain(cause);
      guilty.insert(cause.failure.rank);
      found.independent.push_back(std::move(cause.failure));
    }
    for (event::FailureFound& failure : ends_.failures) {
      if (guilty.contains(failure.rank)) continue;
      failure.victim = true;
      found.victims.push_back(std::move(failure));
    }
    return found;
  }

  AttemptEnds ends_;
  std::map<int, size_t> failure_at_;  // by rank
  std::map<int, size_t> stopped_at_;
  std::vector<Cause> causes_;
};

}  // namespace

bool shows_victim(const event::FailureFound& failure) {
  if (failure.victim) return true;
  return failure.signal == 0 &&
         is_one_of(failure.comm_error, {"peer_lost", "aborted", "operation_failed"});
}

Causes find_causes(AttemptEnds ends) {
  return Finder(std::move(ends)).find();
}

void blame_the_missing(std::vector<event::FailureFound>& failures,
                       const event::CollectivesFound& collectives) {
  for (event::FailureFound& failure : failures) {
    if (!failure.victim || !failure.blames.empty() || !gave_up_on_all(failure)) continue;
    for (const event::CollectiveFinding& finding : collectives.found) {
      const std::vector<int> waiting = parse_ranges(finding.waiting, kMaxWaiting);
      const bool waited = std::find(waiting.begin(), waiting.end(), failure.rank) != waiting.end();
      if (finding.kind != "missing" || !waited) continue;
      failure.blames = finding.suspects;
      break;
    }
  }
}

std::vector<int> blamed_ranks(const std::vector<event::FailureFound>& failures) {
  std::set<int> all;
  for (const event::FailureFound& failure : failures) {
    if (!shows_victim(failure)) continue;
    const std::vector<int> ranks = parse_ranges(failure.blames, kMaxBlamed);
    all.insert(ranks.begin(), ranks.end());
  }
  return {all.begin(), all.end()};
}

std::string victim_text(const event::FailureFound& victim) {
  const std::vector<int> blamed = parse_ranges(victim.blames, kMaxBlamed);
  std::string text = gave_up_waiting(victim) ? "waited for " : "lost ";
  text += blamed.empty() ? "others" : ranks_text(blamed);
  if (victim.signal != 0) return text + ", killed by " + signal_name(victim.signal);
  return text + ", exited with code " + std::to_string(victim.exit_code);
}

}  // namespace muster
