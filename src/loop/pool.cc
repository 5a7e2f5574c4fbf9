// SPDX-License-Identifier: Apache-2.0
#include "loop/pool.h"

#include <uv.h>

#include <cstdlib>
#include <memory>
#include <utility>

#include "loop/check.h"

namespace muster {

namespace {

// Owns its functions and frees itself in its callback.
struct PoolRequest {
  uv_work_t uv{};
  std::function<void()> work;
  std::function<void()> done;
};

// Three write log files at most (PoolGate), one reads logs (BrowseGate), and one is for everything
// else, so that a disk that hangs does not take them all.
constexpr char kThreads[] = "5";
constexpr char kThreadsVariable[] = "UV_THREADPOOL_SIZE";

// libuv makes its threads at the first use and asks the environment how many; workers are not to
// inherit the answer.
int queue_work(uv_loop_t* loop, uv_work_t* work, uv_work_cb run, uv_after_work_cb after) {
  static bool used = false;
  bool decide = !std::exchange(used, true) && std::getenv(kThreadsVariable) == nullptr;
  if (decide) setenv(kThreadsVariable, kThreads, 1);
  int status = uv_queue_work(loop, work, run, after);
  if (decide) unsetenv(kThreadsVariable);
  return status;
}

}  // namespace

void run_in_pool(Loop& loop, std::function<void()> work, std::function<void()> done) {
  auto request = std::make_unique<PoolRequest>();
  request->uv.data = request.get();
  request->work = std::move(work);
  request->done = std::move(done);
  int status = queue_work(
      loop.raw(), &request->uv, [](uv_work_t* uv) { static_cast<PoolRequest*>(uv->data)->work(); },
      [](uv_work_t* uv, int) noexcept {
        std::unique_ptr<PoolRequest> self(static_cast<PoolRequest*>(uv->data));
        self->done();
      });
  MUST(status == 0);
  (void)request.release();
}

}  // namespace muster
