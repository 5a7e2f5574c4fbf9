// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "loop/loop.h"
#include "loop/result.h"
#include "loop/unique_fd.h"

namespace muster {

// A short-lived process of muster's own, for work that may hang in the kernel for ever, which no
// thread of ours can afford. Forked and not executed: what runs is in memory already, should the
// disk with our own program be the one that does not answer. It stays in our session, so that a
// WorkerGroup neither takes it for something that a worker left behind nor waits for it, and it
// dies with us. Whoever owns it watches `output` for its end of file.
class OwnChild {
 public:
  // `work` runs in the child, with nothing but its end of the pipe open and all signals as at the
  // start of a program. From the thread of the loop alone, which is the one that reaps children.
  static Result<OwnChild> start(const char* name, const std::function<void(int out)>& work);

  OwnChild(OwnChild&&) = default;
  OwnChild& operator=(OwnChild&&) = default;
  // Kills it, if it still runs.
  ~OwnChild();

  int output() const { return output_.get(); }  // non-blocking

  // Takes its end into account, and says whether it had ended by itself, and well. One that is not
  // gone within `patience` hangs in the kernel and is left to whoever reaps later.
  bool end(Milliseconds patience = Milliseconds(20));

 private:
  OwnChild(UniqueFd pidfd, UniqueFd output)
      : pidfd_(std::move(pidfd)), output_(std::move(output)) {}

  UniqueFd pidfd_;  // its pid may be another's by the time: a WorkerGroup reaps it too
  UniqueFd output_;
};

}  // namespace muster
