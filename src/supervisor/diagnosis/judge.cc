// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "supervisor/diagnosis/diagnose.h"
#include "supervisor/diagnosis/wait_status.h"

namespace muster {

bool is_victim(const Evidence& evidence) {
  return evidence.spawn_errno == 0 && evidence.stopped_for != StopReason::kNone;
}

bool of_lost_peer(const event::FailureFound& failure) {
  return failure.signal == 0 &&
         (failure.comm_error == "peer_lost" || failure.comm_error == "aborted" ||
          failure.comm_error == "operation_failed");
}

std::optional<Verdict> judge(std::span<const Evidence> in_order_of_death) {
  std::optional<Verdict> verdict;
  std::vector<size_t> victims;
  for (size_t i = 0; i < in_order_of_death.size(); ++i) {
    const Evidence& evidence = in_order_of_death[i];
    if (is_victim(evidence)) {
      victims.push_back(i);
      continue;
    }
    if (evidence.spawn_errno == 0 && decode_wait_status(evidence.wait_status).success()) continue;
    event::FailureFound failure = diagnose(evidence);
    if (!verdict) {
      verdict = Verdict{std::move(failure), {}, {}, i};
    } else if (of_lost_peer(verdict->root) && !of_lost_peer(failure)) {
      verdict->others.insert(verdict->others.begin(), std::exchange(verdict->root, failure));
      verdict->root_index = i;
    } else {
      verdict->others.push_back(std::move(failure));
    }
  }
  if (verdict) verdict->victims = std::move(victims);
  return verdict;
}

}  // namespace muster
