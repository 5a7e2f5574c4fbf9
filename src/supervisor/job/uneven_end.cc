// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/uneven_end.h"

#include <utility>

#include "supervisor/job/report.h"

namespace muster {

UnevenEndWatch::UnevenEndWatch(Loop& loop, const Recorder& recorder,
                               std::function<void(const std::string&)> say)
    : loop_(loop), recorder_(recorder), say_(std::move(say)) {}

void UnevenEndWatch::observe(const Event& event) {
  const auto* exited = std::get_if<event::WorkerExited>(&event.body);
  if (exited == nullptr || exited->wait_status != 0) {
    if (std::holds_alternative<event::JobEnded>(event.body)) timer_.reset();
    return;
  }
  // Where other nodes' ranks are shown, the coordinator speaks for nodes that finished before ours.
  const AttemptState* attempt = recorder_.state().current();
  const RankState* rank = attempt ? attempt->find(exited->rank) : nullptr;
  if (rank == nullptr || rank->node != attempt->node) return;
  timer_ = Timer::start(loop_, Milliseconds(kUnevenEndUs / 1000), [this] {
    if (auto line = uneven_end_line(recorder_.state(), recorder_.now_us())) say_(*line);
  });
}

}  // namespace muster
