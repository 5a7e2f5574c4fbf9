// SPDX-License-Identifier: Apache-2.0
#include "loop/timer.h"

#include <algorithm>

#include "loop/check.h"
#include "loop/uv_handle.h"

namespace muster {

namespace {

class UvTimer final : public UvHandle<Timer, uv_timer_t> {
 public:
  UvTimer(Loop& loop, Milliseconds delay, Milliseconds period, std::function<void()> on_time)
      : on_time_(std::move(on_time)) {
    MUST(uv_timer_init(loop.raw(), &uv_) == 0);
    // libuv's clock stands still while callbacks run; without this a timer that is started late in
    // a long turn fires early.
    uv_update_time(loop.raw());
    uv_timer_start(
        &uv_,
        [](uv_timer_t* uv) noexcept {
          if (auto* self = open<UvTimer>(uv)) self->on_time_();
        },
        static_cast<uint64_t>(std::max<int64_t>(0, delay.count())),
        static_cast<uint64_t>(period.count()));
  }

  void unref() override { uv_unref(reinterpret_cast<uv_handle_t*>(&uv_)); }

 private:
  std::function<void()> on_time_;
};

}  // namespace

Owned<Timer> Timer::start(Loop& loop, Milliseconds delay, std::function<void()> on_time) {
  return Owned<Timer>(new UvTimer(loop, delay, Milliseconds(0), std::move(on_time)));
}

Owned<Timer> Timer::repeat(Loop& loop, Milliseconds period, std::function<void()> on_time) {
  MUST(period.count() > 0);
  return Owned<Timer>(new UvTimer(loop, period, period, std::move(on_time)));
}

}  // namespace muster
