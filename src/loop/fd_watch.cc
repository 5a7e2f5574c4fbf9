// SPDX-License-Identifier: Apache-2.0
#include "loop/fd_watch.h"

#include "loop/uv_handle.h"

namespace muster {

namespace {

class UvPoll final : public UvHandle<FdWatch, uv_poll_t> {
 public:
  explicit UvPoll(std::function<void(int)> on_ready) : on_ready_(std::move(on_ready)) {}

  int init(Loop& loop, int fd) { return uv_poll_init(loop.raw(), &uv_, fd); }

  void set_interest(int interest) override {
    if (interest == interest_) return;
    interest_ = interest;
    if (interest == 0) {
      uv_poll_stop(&uv_);
      return;
    }
    uv_poll_start(&uv_, interest, [](uv_poll_t* uv, int status, int events) noexcept {
      auto* self = open<UvPoll>(uv);
      if (self == nullptr || self->interest_ == 0) return;
      // On error libuv has stopped the poll and tells no events: let the owner's next read or write
      // find out.
      if (status < 0) {
        events = self->interest_;
        self->interest_ = 0;
      }
      self->on_ready_(events & (kReadable | kWritable));
    });
  }

 private:
  static_assert(kReadable == UV_READABLE && kWritable == UV_WRITABLE);
  std::function<void(int)> on_ready_;
  int interest_ = 0;
};

}  // namespace

Result<Owned<FdWatch>> FdWatch::start(Loop& loop, int fd, int interest,
                                      std::function<void(int)> on_ready) {
  auto* poll = new UvPoll(std::move(on_ready));
  if (int status = poll->init(loop, fd); status != 0) {
    delete poll;  // never initialised, so there is nothing to close
    return errno_error(uv_errno(status), "watch descriptor " + std::to_string(fd));
  }
  Owned<FdWatch> owned(poll);
  owned->set_interest(interest);
  return owned;
}

}  // namespace muster
