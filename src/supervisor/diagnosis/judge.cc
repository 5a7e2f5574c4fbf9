// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/judge.h"

#include <signal.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "supervisor/diagnosis/wait_status.h"

namespace muster {

namespace {

constexpr int kExitedWith1 = 1 << 8;  // as wait(2) has it

// What a program raises because of our signal, and not before it.
bool is_reaction(const event::FailureFound& failure) {
  constexpr std::string_view kRaised[] = {"KeyboardInterrupt", "SystemExit", "SignalException",
                                          "SIGTERM",           "signal 15",  "Terminated"};
  return std::any_of(std::begin(kRaised), std::end(kRaised), [&](std::string_view name) {
    return failure.message.find(name) != std::string::npos;
  });
}

// What a worker that we stopped had shown of a failure of its own.
event::FailureFound before_the_stop(Evidence evidence) {
  event::FailureFound known;
  known.attempt = evidence.attempt;
  known.rank = evidence.rank;
  known.local_rank = evidence.local_rank;
  known.pid = evidence.pid;
  const WaitStatus status = decode_wait_status(evidence.wait_status);
  if (status.success()) return known;
  // Our signal came between its last words and its end, which would have been with 1. (The last one
  // that we sent may have come too late.)
  const bool by_us = status.signal == evidence.stop_signal || status.signal == SIGTERM;
  if (status.signal != 0 && by_us) evidence.wait_status = kExitedWith1;
  event::FailureFound shown = diagnose(evidence);
  // A code or an abort alone may be how it stops.
  const bool says_nothing = shown.kind == "exit_code" || shown.kind == "abort" ||
                            shown.kind == "signal" || shown.kind == "interrupted";
  if (says_nothing || is_reaction(shown) || shows_victim(shown)) return known;
  if (!shown.note.empty()) shown.note += "; ";
  shown.note += "it had not ended when muster stopped it";
  return shown;
}

}  // namespace

bool is_victim(const Evidence& evidence) {
  return evidence.spawn_errno == 0 && evidence.stopped_for != StopReason::kNone;
}

AttemptEnds judge(std::span<const Evidence> in_order_of_death) {
  AttemptEnds ends;
  for (const Evidence& evidence : in_order_of_death) {
    const bool started = evidence.spawn_errno == 0;
    if (is_victim(evidence)) {
      ends.stopped.push_back(before_the_stop(evidence));
    } else if (!started || !decode_wait_status(evidence.wait_status).success()) {
      ends.failures.push_back(diagnose(evidence));
    }
  }
  return ends;
}

}  // namespace muster
