// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "loop/handle.h"
#include "loop/loop.h"
#include "loop/result.h"

namespace muster {

// Says when a descriptor that epoll accepts (pipe, socket, pidfd, signalfd, terminal) can be read
// or written. Does not own the descriptor: its owner keeps it open until this is dropped, and only
// one FdWatch may exist per descriptor.
//
// Descriptors that become ready between two turns are reported in the order in which they became
// ready (epoll keeps a queue), which is what tells the first death from the others.
class FdWatch : public Handle {
 public:
  static constexpr int kReadable = 1;
  static constexpr int kWritable = 2;

  // `on_ready` gets the bits that are ready. An error or hang-up condition shows as whatever was
  // asked for, so that the next read or write finds it.
  static Result<Owned<FdWatch>> start(Loop& loop, int fd, int interest,
                                      std::function<void(int ready)> on_ready);

  // Changes what is waited for; 0 pauses.
  virtual void set_interest(int interest) = 0;
};

}  // namespace muster
