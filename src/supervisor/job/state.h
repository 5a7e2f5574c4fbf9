// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "supervisor/job/event.h"

namespace muster {

enum class Phase { kStarting, kWaiting, kRunning, kStopping, kRestarting, kEnded };
enum class RankPhase { kPending, kRunning, kExited, kSpawnFailed };

struct RankState {
  int rank = 0;
  int local_rank = 0;
  int node = 0;  // GROUP_RANK of its node
  int pid = 0;
  RankPhase phase = RankPhase::kPending;
  int wait_status = 0;
  int64_t max_rss_kib = 0;
  int64_t started_us = 0;
  int64_t ended_us = 0;
  bool wrote_stdout = false;
  bool wrote_stderr = false;
  StopReason stopped_for = StopReason::kNone;  // we signalled it before it ended
  int stop_signal = 0;                         // last signal we sent
};

// A stall that is over.
struct PastStall {
  event::StallFound found;
  int64_t lasted_us = -1;  // -1: nobody saw its end
  std::string how;         // "rank 3 wrote again"
};

inline constexpr size_t kMaxPastStalls = 16;     // kept of an attempt
inline constexpr size_t kMaxEvidenceSaved = 64;  // likewise, of all nodes

struct AttemptState {
  int attempt = 0;
  int restart_count = 0;
  int node = 0;  // this muster's GROUP_RANK
  int node_count = 1;
  int world_size = 0;
  int64_t started_us = 0;
  std::vector<event::NodeSpan> nodes;  // whose ranks are shown: all, or only this muster's own
  std::vector<RankState> ranks;        // contiguous, by rank
  std::vector<int> death_order;        // ranks in the order in which the loop learnt of their ends
  std::optional<event::FailureFound> root_cause;
  std::vector<event::FailureFound> other_causes;       // independent ones, first first
  std::vector<event::VictimGroup> victims;             // told by the coordinator of several nodes
  std::optional<event::CollectivesFound> collectives;  // what its workers were doing at its end
  std::optional<event::StallFound> stall;              // it makes no progress now
  std::vector<PastStall> past_stalls;                  // the last kMaxPastStalls of them
  std::vector<event::EvidenceSaved> saved;             // the last kMaxEvidenceSaved of them
  std::string no_restart;                              // why none followed its failure
  std::string restart_asked_by;                        // who wanted another instead, "" if nobody
  int begun = 0;                                       // ranks that were started, or could not be

  // Null if the rank is not shown here.
  const RankState* find(int rank) const;
  RankState* find(int rank);

  // The host that runs `rank`, "" if it is not shown here.
  std::string host_of(int rank) const;
};

// A node as the coordinator sees it.
struct NodeState {
  event::NodeJoined joined;
  int64_t joined_us = 0;
  std::optional<event::NodeLost> lost;
};

// The whole job as one plain value. Built only by apply(); everything that shows a job (report,
// summary.json, later /status and `muster view`) reads this and nothing else.
struct JobState {
  event::JobStarted job;
  std::chrono::system_clock::time_point started{};
  Phase phase = Phase::kStarting;
  std::string master_addr;
  int master_port = 0;
  std::vector<AttemptState> attempts;
  std::optional<event::SignalReceived> stop_signal;
  std::optional<event::StopOrdered> stop_order;  // the first that another node's signal caused
  int interrupts = 0;  // SIGINTs that asked for an end; the second one kills
  int restarts_used = 0;
  int64_t restart_due_us = 0;    // while phase is kRestarting: when the next attempt begins
  int64_t restart_delay_us = 0;  // and how long it was put off then
  std::vector<NodeState> nodes;  // every one that ever joined; at the coordinator
  std::unordered_map<std::string, size_t> node_at;  // where an id is in `nodes`
  std::optional<event::NodesAwaited> awaited;       // set while phase is kWaiting
  std::vector<event::LeftoverFound> leftovers;
  std::vector<event::Trouble> troubles;
  std::optional<event::JobEnded> end;
  int64_t last_us = 0;

  AttemptState* current() { return attempts.empty() ? nullptr : &attempts.back(); }
  const AttemptState* current() const { return attempts.empty() ? nullptr : &attempts.back(); }
};

// The reducer: the only thing that changes a JobState. Unknown ranks and attempts are ignored, so
// that a damaged events.jsonl can still be shown.
void apply(JobState& state, const Event& event);

// The victims: ranks that we signalled before they ended, but the root cause, in their order.
std::vector<const RankState*> ranks_stopped_by_us(const AttemptState& attempt);

}  // namespace muster
