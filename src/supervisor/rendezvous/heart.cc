// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/heart.h"

#include <algorithm>
#include <utility>

namespace muster {

namespace {

constexpr size_t kSamples = 8;

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

Heart::Heart(Loop& loop, Rate rate, std::function<void()> send, std::function<void()> on_silence)
    : loop_(loop), rate_(rate), on_silence_(std::move(on_silence)) {
  send();
  beat_ = Timer::repeat(loop, rate.interval, std::move(send));
  heard();
}

void Heart::heard() {
  last_heard_ = Clock::now();
  wait_for_word(rate_.patience());
}

void Heart::wait_for_word(Milliseconds time) {
  quiet_due_ = Clock::now() + time;
  quiet_ = Timer::start(loop_, time, [this] { on_quiet(); });
}

void Heart::on_quiet() {
  // Late by much, so it was this process that did not run (SIGSTOP, a suspended machine). What came
  // meanwhile is still in the socket and is read after the timers: listen first.
  if (Clock::now() - quiet_due_ > rate_.interval) return wait_for_word(rate_.interval);
  auto on_silence = on_silence_;
  on_silence();
}

}  // namespace muster
