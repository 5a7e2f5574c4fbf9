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
  message::Samples batch{attempt_, {}};
  size_t bytes = 0;
  for (RankSample& sample : samples) {
    const size_t more = most_bytes_of(sample);
    const bool full =
        batch.samples.size() == kMaxSamplesPerMessage || bytes + more > kMaxSampleBytes;
    if (full && !batch.samples.empty()) {
      if (!callbacks_.send(std::exchange(batch, {attempt_, {}}))) return;
      bytes = 0;
    }
    bytes += more;
    batch.samples.push_back(std::move(sample));
  }
  if (!batch.samples.empty()) callbacks_.send(std::move(batch));
}

}  // namespace muster
