// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/failure_hold.h"

#include <signal.h>

#include <utility>

#include "supervisor/diagnosis/causes.h"
#include "supervisor/diagnosis/wait_status.h"
#include "supervisor/job/gather.h"

namespace muster {

namespace {

// For its last words, where a process of its own keeps its pipes open.
constexpr Milliseconds kLastWords{20};

// A broken connection is told by an exception: by an exit code, or uncaught by an abort.
bool may_be_victim(int wait_status) {
  const WaitStatus status = decode_wait_status(wait_status);
  return status.signal == 0 || status.signal == SIGABRT;
}

}  // namespace

FailureHold::FailureHold(const Parts& parts, std::function<void(int)> on_over)
    : parts_(parts), on_over_(std::move(on_over)) {}

FailureHold::~FailureHold() {
  *alive_ = false;
}

void FailureHold::died(int rank) {
  const RankState* dead = parts_.recorder.state().current()->find(rank);
  if (first_ < 0) {
    first_ = rank;
    patience_ = Timer::start(parts_.loop, kCulpritPatience, [this] { over(first_); });
  }
  if (dead == nullptr || !may_be_victim(dead->wait_status)) return over(rank);
  if (parts_.logs.closed(dead->local_rank)) return look(rank);
  last_words_[rank] = Timer::start(parts_.loop, kLastWords, [this, rank] { look(rank); });
}

void FailureHold::closed(int rank) {
  if (last_words_.erase(rank) > 0) look(rank);
}

void FailureHold::look(int rank) {
  const AttemptState& attempt = *parts_.recorder.state().current();
  look_at(parts_.loop, attempt, *attempt.find(rank), parts_.logs, parts_.pages, parts_.surroundings,
          [this, rank, alive = alive_](Evidence evidence) {
            if (!*alive) return;
            evidence.own_rules = parts_.failure_rules;
            if (!shows_victim(diagnose(evidence))) over(rank);
          });
}

void FailureHold::give_up() {
  over(first_);
}

// In a turn of its own: whoever calls us is not done yet.
void FailureHold::over(int rank) {
  if (over_) return;
  over_ = Timer::start(parts_.loop, Milliseconds(0), [this, rank] {
    auto tell = std::move(on_over_);
    tell(rank);
  });
}

}  // namespace muster
