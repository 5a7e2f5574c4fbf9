// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/heart.h"

#include <algorithm>
#include <utility>

namespace muster {

namespace {

constexpr size_t kSamples = 8;
// Heartbeats that are remembered without an echo; more than any patience lasts for.
constexpr size_t kMaxUnechoed = 1024;

}  // namespace

int64_t unix_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

void ClockOffset::add(int64_t sent_us, int64_t theirs_us, int64_t received_us) {
  // A clock that was set meanwhile: this says nothing, and neither does what was measured before.
  if (received_us < sent_us) return samples_.clear();
  samples_.push_back({clock_offset_us(sent_us, theirs_us, received_us), received_us - sent_us});
  if (samples_.size() > kSamples) samples_.pop_front();
}

int64_t ClockOffset::us() const {
  auto best = std::min_element(
      samples_.begin(), samples_.end(),
      [](const Sample& a, const Sample& b) { return a.round_trip_us < b.round_trip_us; });
  return best == samples_.end() ? 0 : best->offset_us;
}

Heart::Heart(Loop& loop, Rate rate, std::function<void(int64_t)> send,
             std::function<void()> on_silence)
    : loop_(loop),
      rate_(rate),
      send_(std::move(send)),
      on_silence_(std::move(on_silence)),
      last_known_(Clock::now()) {
  beat();
  beat_ = Timer::repeat(loop, rate.interval, [this] { beat(); });
  wait_until(last_known_ + rate_.patience());
}

void Heart::beat() {
  beats_.push_back({unix_us(), Clock::now()});
  if (beats_.size() > kMaxUnechoed) beats_.pop_front();
  send_(beats_.back().sent_us);
}

void Heart::echoed(int64_t sent_us) {
  auto beat = std::find_if(beats_.begin(), beats_.end(),
                           [&](const Beat& b) { return b.sent_us == sent_us; });
  if (beat == beats_.end()) return;
  last_known_ = beat->sent;
  beats_.erase(beats_.begin(), beat + 1);
  wait_until(last_known_ + rate_.patience());
}

void Heart::wait_until(Clock::time_point time) {
  quiet_due_ = time;
  const auto left = std::chrono::ceil<Milliseconds>(time - Clock::now());
  quiet_ = Timer::start(loop_, std::max(left, Milliseconds(0)), [this] { on_quiet(); });
}

void Heart::on_quiet() {
  // Late by much, so it was this process that did not run (SIGSTOP, a suspended machine). What came
  // meanwhile is still in the socket and is read after the timers: listen first.
  const Clock::time_point now = Clock::now();
  if (now - quiet_due_ > rate_.interval) return wait_until(now + rate_.interval);
  auto on_silence = on_silence_;
  on_silence();
}

}  // namespace muster
