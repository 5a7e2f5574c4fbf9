// SPDX-License-Identifier: Apache-2.0
// Only for the sources of src/loop/: the one place where handle.data is set and cast back.
#pragma once

#include <uv.h>

#include <functional>
#include <utility>

namespace muster {

// Implements the life cycle open -> closing -> closed of `Interface` (a Handle) over the libuv
// handle type `Uv`. A class derived from this initialises uv_ in its factory; from a successful
// init on the object must be closed, never deleted.
template <typename Interface, typename Uv>
class UvHandle : public Interface {
 public:
  void close() override {
    if (closing_) return;
    closing_ = true;
    on_closing();
    uv_close(reinterpret_cast<uv_handle_t*>(&uv_),
             [](uv_handle_t* handle) noexcept { delete static_cast<UvHandle*>(handle->data); });
  }

 protected:
  UvHandle() { uv_.data = this; }

  // Drops what must not be called any more; runs at once, before libuv's close callback.
  virtual void on_closing() {}

  bool closing() const { return closing_; }

  // The object behind a libuv handle, null once it is closing: C callbacks check it before they
  // call ours.
  template <typename T>
  static T* open(Uv* uv) {
    auto* self = static_cast<UvHandle*>(uv->data);
    return self->closing_ ? nullptr : static_cast<T*>(self);
  }

  Uv uv_{};

 private:
  bool closing_ = false;
};

// A libuv status as an errno value.
inline int uv_errno(int status) {
  return -status;
}

}  // namespace muster
