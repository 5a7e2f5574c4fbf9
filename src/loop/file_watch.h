// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "loop/handle.h"
#include "loop/loop.h"
#include "loop/result.h"

namespace muster {

// Says once that a file, or what a folder contains, has changed since the watch was started: by any
// process of this machine (inotify). Whoever wants to know more starts another, before looking what
// has changed; so a file that is written all the time costs as many wake-ups as its reader likes.
class FileWatch : public Handle {
 public:
  // Fails where there is no such file, or no more watches are to be had.
  static Result<Owned<FileWatch>> start(Loop& loop, const std::string& path,
                                        std::function<void()> on_change);
};

}  // namespace muster
