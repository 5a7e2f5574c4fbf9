// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

namespace muster {

// Base of everything that lives in a loop: created by a static factory as Owned<T>, neither copied
// nor moved, stopped only by dropping its owner. Dropping is allowed inside the handle's own
// callback: the callback object dies with the handle, a loop turn later.
class Handle {
 public:
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  // Silences the handle and frees it in its close callback. Called once, by Owned's deleter.
  virtual void close() = 0;

 protected:
  Handle() = default;
  virtual ~Handle() = default;
};

struct HandleCloser {
  void operator()(Handle* handle) const { handle->close(); }
};

template <typename T>
using Owned = std::unique_ptr<T, HandleCloser>;

}  // namespace muster
