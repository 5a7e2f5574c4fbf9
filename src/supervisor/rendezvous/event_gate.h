// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "supervisor/rendezvous/messages.h"
#include "supervisor/rendezvous/round.h"

namespace muster {

// What one agent may write into the coordinator's record: about its own ranks, in the attempt it
// takes part in, and not without end. One for each agent.
class EventGate {
 public:
  // At most that many events for each of its workers in one attempt.
  EventGate(const NodeFacts& facts, int max_events_per_worker)
      : host_(facts.host), workers_(facts.workers), per_worker_(max_events_per_worker) {}

  void assigned(const Assignment& assignment);

  // Those that may be recorded, as they are to be recorded. The first events beyond the limit are
  // replaced by a Trouble.
  std::vector<EventBody> pass(message::Events message);

  // Whether a failure in the attempt it runs can be one of this agent's. It is then given the
  // agent's own host and node, whatever it says.
  bool own(event::FailureFound& failure) const;

  bool running(int attempt) const { return attempt == attempt_; }
  // Whether that rank is one of its own in the attempt it runs.
  bool has(int attempt, int rank) const;

 private:
  bool may_pass(EventBody& body) const;

  const std::string host_;
  const int workers_;
  const int per_worker_;
  int attempt_ = -1;
  int node_ = 0;
  int first_rank_ = 0;
  int64_t left_ = 0;
};

}  // namespace muster
