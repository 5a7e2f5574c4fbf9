// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/sample_push.h"

#include <algorithm>
#include <utility>

#include "supervisor/rendezvous/sample_codec.h"

namespace muster {

namespace {

// A part of the interval that is another for each of some thousand nodes that follow each other.
Milliseconds spread(Milliseconds interval, int node) {
  constexpr int64_t kSteps = 1'024;
  constexpr int64_t kStride = 397;  // odd, so that every step is reached
  return interval * ((int64_t{node} * kStride) % kSteps) / kSteps;
}

}  // namespace

SamplePush::SamplePush(Loop& loop, Callbacks callbacks, Milliseconds interval)
    : loop_(loop), callbacks_(std::move(callbacks)), idle_interval_(interval) {}

Milliseconds SamplePush::interval() const {
  const bool watched = Clock::now() < watched_until_;
  return watched ? std::min(watched_interval_, idle_interval_) : idle_interval_;
}

void SamplePush::arm(Milliseconds wait) {
  if (!callbacks_.take) return;
  due_ = Clock::now() + wait;
  timer_ = Timer::start(loop_, wait, [this] { push(); });
}

void SamplePush::assigned(const Assignment& assignment) {
  attempt_ = assignment.attempt;
  node_ = assignment.node;
  arm(spread(interval(), node_));
}

void SamplePush::watch(const message::Watch& watch) {
  watched_interval_ = Milliseconds(watch.every_ms);
  watched_until_ = Clock::now() + Milliseconds(watch.for_ms);
  if (!timer_) return;
  const Milliseconds soon = spread(interval(), node_);
  if (Clock::now() + soon < due_) arm(soon);
}

void SamplePush::pause() {
  timer_.reset();
}

void SamplePush::resume() {
  if (attempt_ >= 0) arm(spread(interval(), node_));
}

void SamplePush::push() {
  arm(interval());
  std::vector<RankSample> samples = callbacks_.take();
  for (size_t at = 0; at < samples.size(); at += kMaxSamplesPerMessage) {
    const size_t end = std::min(samples.size(), at + kMaxSamplesPerMessage);
    message::Samples batch{attempt_,
                           {samples.begin() + static_cast<std::ptrdiff_t>(at),
                            samples.begin() + static_cast<std::ptrdiff_t>(end)}};
    if (!callbacks_.send(std::move(batch))) return;
  }
}

}  // namespace muster
