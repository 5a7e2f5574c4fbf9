// SPDX-License-Identifier: Apache-2.0
#include "loop/loop.h"

#include <uv.h>

#include <cstdio>
#include <vector>

#include "loop/check.h"

namespace muster {

namespace {

// Turns the destructor allows for closing handles and running pool work before it gives up.
constexpr int kMaxClosingTurns = 100'000;

}  // namespace

// Posted tasks run from an idle-priority async handle, so that post() also wakes a sleeping loop.
struct Loop::Posted {
  uv_async_t async{};
  std::vector<std::function<void()>> tasks;

  void run() {
    uv_unref(reinterpret_cast<uv_handle_t*>(&async));
    std::vector<std::function<void()>> batch;
    batch.swap(tasks);
    for (auto& task : batch)
      task();
  }
};

Loop::Loop() : loop_(std::make_unique<uv_loop_t>()), posted_(std::make_unique<Posted>()) {
  MUST(uv_loop_init(loop_.get()) == 0);
  MUST(uv_async_init(loop_.get(), &posted_->async, [](uv_async_t* async) noexcept {
         static_cast<Posted*>(async->data)->run();
       }) == 0);
  posted_->async.data = posted_.get();
  uv_unref(reinterpret_cast<uv_handle_t*>(&posted_->async));
}

Loop::~Loop() {
  uv_close(reinterpret_cast<uv_handle_t*>(&posted_->async), nullptr);
  for (int turn = 0; turn < kMaxClosingTurns; ++turn) {
    if (uv_loop_close(loop_.get()) == 0) return;
    // Only closing handles and pool requests may be left; both end by themselves. A live handle
    // would make UV_RUN_ONCE wait for ever, so turn without waiting unless a request is active.
    uv_run(loop_.get(), loop_->active_reqs.count > 0 ? UV_RUN_ONCE : UV_RUN_NOWAIT);
  }
  std::fprintf(stderr, "muster: internal error: handles alive at the end of the loop:\n");
  uv_print_all_handles(loop_.get(), stderr);
  MUST(!"every handle has an owner that dropped it before the loop died");
}

bool Loop::has_requests() const {
  return loop_->active_reqs.count > 0;
}

void Loop::run() {
  uv_run(loop_.get(), UV_RUN_DEFAULT);
}

void Loop::stop() {
  uv_stop(loop_.get());
}

bool Loop::run_until(const std::function<bool()>& done, Milliseconds deadline) {
  // Timers run before the loop waits: what one of them has brought about must not wait as well.
  struct Look {
    const std::function<bool()>& done;
    uv_timer_t timer{};
    uv_prepare_t before_waiting{};
    bool expired = false;
    int closed = 0;
  } look{done};
  look.timer.data = look.before_waiting.data = &look;
  MUST(uv_timer_init(loop_.get(), &look.timer) == 0);
  MUST(uv_prepare_init(loop_.get(), &look.before_waiting) == 0);
  uv_timer_start(
      &look.timer, [](uv_timer_t* uv) noexcept { static_cast<Look*>(uv->data)->expired = true; },
      static_cast<uint64_t>(deadline.count()), 0);
  uv_prepare_start(&look.before_waiting, [](uv_prepare_t* uv) noexcept {
    if (static_cast<Look*>(uv->data)->done()) uv_stop(uv->loop);
  });
  while (!done() && !look.expired)
    uv_run(loop_.get(), UV_RUN_ONCE);
  auto count = [](uv_handle_t* uv) noexcept { ++static_cast<Look*>(uv->data)->closed; };
  uv_close(reinterpret_cast<uv_handle_t*>(&look.timer), count);
  uv_close(reinterpret_cast<uv_handle_t*>(&look.before_waiting), count);
  while (look.closed < 2)
    uv_run(loop_.get(), UV_RUN_NOWAIT);
  return done();
}

void Loop::post(std::function<void()> task) {
  posted_->tasks.push_back(std::move(task));
  // A posted task must run even when nothing else keeps the loop alive; the async is unreferenced
  // only while there is none.
  uv_ref(reinterpret_cast<uv_handle_t*>(&posted_->async));
  uv_async_send(&posted_->async);
}

}  // namespace muster
