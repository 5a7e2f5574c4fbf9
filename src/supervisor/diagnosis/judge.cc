// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/diagnose.h"
#include "supervisor/diagnosis/wait_status.h"

namespace muster {

bool is_victim(const Evidence& evidence) {
  return evidence.spawn_errno == 0 && evidence.stopped_for != StopReason::kNone;
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
    if (verdict) {
      verdict->others.push_back(diagnose(evidence));
    } else {
      verdict = Verdict{diagnose(evidence), {}, {}, i};
    }
  }
  if (verdict) verdict->victims = std::move(victims);
  return verdict;
}

}  // namespace muster
