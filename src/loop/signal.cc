// SPDX-License-Identifier: Apache-2.0
#include "loop/signal.h"

#include "loop/check.h"
#include "loop/uv_handle.h"

namespace muster {

namespace {

class UvSignal final : public UvHandle<SignalWatch, uv_signal_t> {
 public:
  UvSignal(Loop& loop, int signal, std::function<void()> on_signal)
      : on_signal_(std::move(on_signal)) {
    MUST(uv_signal_init(loop.raw(), &uv_) == 0);
    MUST(uv_signal_start(
             &uv_,
             [](uv_signal_t* uv, int) noexcept {
               if (auto* self = open<UvSignal>(uv)) self->on_signal_();
             },
             signal) == 0);
  }

  void unref() override { uv_unref(reinterpret_cast<uv_handle_t*>(&uv_)); }

 private:
  std::function<void()> on_signal_;
};

}  // namespace

Owned<SignalWatch> SignalWatch::start(Loop& loop, int signal, std::function<void()> on_signal) {
  return Owned<SignalWatch>(new UvSignal(loop, signal, std::move(on_signal)));
}

}  // namespace muster
