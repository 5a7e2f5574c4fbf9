// SPDX-License-Identifier: Apache-2.0
#include "loop/pool.h"

#include <uv.h>

#include <memory>

#include "loop/check.h"

namespace muster {

namespace {

// Owns its functions and frees itself in its callback.
struct PoolRequest {
  uv_work_t uv{};
  std::function<void()> work;
  std::function<void()> done;
};

}  // namespace

void run_in_pool(Loop& loop, std::function<void()> work, std::function<void()> done) {
  auto request = std::make_unique<PoolRequest>();
  request->uv.data = request.get();
  request->work = std::move(work);
  request->done = std::move(done);
  int status = uv_queue_work(
      loop.raw(), &request->uv, [](uv_work_t* uv) { static_cast<PoolRequest*>(uv->data)->work(); },
      [](uv_work_t* uv, int) noexcept {
        std::unique_ptr<PoolRequest> self(static_cast<PoolRequest*>(uv->data));
        self->done();
      });
  MUST(status == 0);
  (void)request.release();
}

}  // namespace muster
