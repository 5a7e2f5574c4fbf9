// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/diagnosis/collectives.h"
#include "supervisor/job/event.h"

namespace muster {

// The plain values that agents and the coordinator exchange. An agent is one node's muster; the
// coordinator decides for all of them and lives in the muster that hosts the meeting point. They
// travel as rendezvous/messages.h says; with one node they are handed over in the process.

// What must be equal on all nodes; a joiner that differs is refused and told in what.
struct JobTerms {
  int min_nodes = 1;
  int max_nodes = 1;
  int max_restarts = 0;
  bool restart_always = false;
  bool agent_store = true;
  // As cli/failure_policy writes them.
  std::string failure_policy{};
  std::string same_failure_limit = "0";
  std::string restart_backoff = "0";
};

// What an agent says of itself when it joins.
struct NodeFacts {
  std::string id;  // random; the agent's for its whole life, across reconnections
  std::string host;
  int pid = 0;  // of the muster that the user started
  int workers = 0;
  std::string role = "default";
  std::optional<int> node_rank;  // --node-rank, if it was given
  std::string address;           // --local-addr, "" if not given
  std::string endpoint_host;     // the meeting point's host as this agent was told it
  std::string log_dir;
  std::string started_by;
  int spare_port = 0;          // free on this node: MASTER_PORT where workers host their own store
  int attempt = -1;            // whose workers it still runs when it comes back, -1: none
  int last_attempt = -1;       // the highest it ever took part in: one elected later goes on from
  int last_restart_count = 0;  // there
  JobTerms terms;
};

// One node's part in one attempt.
struct Assignment {
  int attempt = 0;        // counts every start
  int restart_count = 0;  // TORCHELASTIC_RESTART_COUNT: those charged to the budget
  int node = 0;           // GROUP_RANK
  int node_count = 1;     // GROUP_WORLD_SIZE
  int first_rank = 0;
  int world_size = 0;
  int role_first_rank = 0;
  int role_world_size = 0;
  std::string master_addr;
  int master_port = 0;
  // Every node, for the agent in the coordinator's own process; the others get an empty list.
  std::vector<event::NodeSpan> nodes;
};

// To an agent whose workers run: end them. To one without workers it means nothing.
struct StopOrder {
  int attempt = 0;
  int signal = 15;
  StopReason reason = StopReason::kFailure;
  bool kill = false;  // SIGKILL at once
  std::string why;    // for the console: "rank 5 on node-b failed", "node-c was lost"
  // Ranks that hang, "3", "0-2,5": they get SIGABRT first, so that they leave their stacks.
  std::string hung{};
};

// An agent's first news of a failure: its own stop has begun, the evidence follows with the
// outcome. `preliminary` is judged from the wait status alone.
struct FailureNotice {
  int attempt = 0;
  event::FailureFound preliminary;
};

// An agent's part of an attempt is over: no process of it is left, all its bytes are in files.
// `early`: it is not yet, its stop takes long; then it says what is known by now.
struct NodeOutcome {
  int attempt = 0;
  bool early = false;
  bool complete = false;                    // every worker ended with 0 and nobody stopped them
  std::optional<event::FailureFound> root;  // the first failure here, in the order of deaths
  std::vector<event::FailureFound> others;  // the next ones, at most kMaxOtherCauses
  std::vector<event::VictimGroup> victims;  // stopped by muster, and failures beyond those
  bool left_running = false;                // something could not be ended
  std::string trouble;  // the attempt could not be begun here, and why (the log folder)
  // What the workers' pages said when the first of them was to be stopped.
  std::vector<KnownRank> operations{};
  int64_t step = -1;  // the highest that they reached, -1: they told of none
  // Workers that were stopped before they had ended, and what they had shown by then (`kind` empty:
  // nothing), at most kMaxSuspects: one of them may be to blame.
  std::vector<event::FailureFound> suspects{};
  std::string finished{};  // ranks that had ended with 0 before the stop
  // Ranks that had failed by then, beyond those in `root` and `others`.
  std::string more_failed{};
};
inline constexpr size_t kMaxSuspects = 8;

// Why an attempt ended, for all nodes alike. `root` is empty when only membership changed. `early`:
// workers are still being stopped; it has the root alone, which stays, and the rest follows.
struct AttemptVerdict {
  int attempt = 0;
  std::optional<event::FailureFound> root;
  // Other independent causes, first first; then victims by cause. At most kMaxOtherCauses.
  std::vector<event::FailureFound> others;
  std::vector<event::VictimGroup> victims;  // at most kMaxVictimGroups; the last may say "and ..."
  bool restarts = false;                    // another attempt follows ...
  int restart_count = 0;                    // ... with this count
  event::CollectivesFound collectives{};    // made of the pages of all nodes
  std::string no_restart{};                 // else why it does not, "" where nothing had failed
  int64_t delay_ms = 0;                     // the next attempt is put off so long
  int excluded = -1;                        // the node that may have no part in it
  bool early = false;
};
inline constexpr size_t kMaxOtherCauses = 8;
inline constexpr size_t kMaxVictimGroups = 8;

struct JobEnd {
  Outcome outcome = Outcome::kSucceeded;
  int exit_code = 0;
  std::string why;     // what ended it if neither worker nor signal did: "no replacement came ..."
  std::string kind{};  // event::JobEnded's
};

}  // namespace muster
