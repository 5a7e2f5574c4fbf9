// SPDX-License-Identifier: Apache-2.0
#include "loop/file_watch.h"

#include "loop/uv_handle.h"

namespace muster {

namespace {

class UvFileWatch final : public UvHandle<FileWatch, uv_fs_event_t> {
 public:
  explicit UvFileWatch(std::function<void()> on_change) : on_change_(std::move(on_change)) {}

  int init(Loop& loop) { return uv_fs_event_init(loop.raw(), &uv_); }
  int start(const std::string& path) {
    return uv_fs_event_start(
        &uv_,
        [](uv_fs_event_t* uv, const char*, int, int) noexcept {
          auto* self = open<UvFileWatch>(uv);
          if (self == nullptr || self->told_) return;
          self->told_ = true;
          uv_fs_event_stop(uv);
          self->on_change_();
        },
        path.c_str(), 0);
  }

 private:
  std::function<void()> on_change_;
  bool told_ = false;
};

}  // namespace

Result<Owned<FileWatch>> FileWatch::start(Loop& loop, const std::string& path,
                                          std::function<void()> on_change) {
  auto* watch = new UvFileWatch(std::move(on_change));
  if (int status = watch->init(loop); status != 0) {
    delete watch;
    return errno_error(uv_errno(status), "watch " + path);
  }
  Owned<FileWatch> owned(watch);
  if (int status = watch->start(path); status != 0) {
    return errno_error(uv_errno(status), "watch " + path);
  }
  return owned;
}

}  // namespace muster
