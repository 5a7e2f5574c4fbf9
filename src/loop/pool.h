// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "loop/loop.h"

namespace muster {

// Runs `work` on a thread of libuv's pool, then `done` in the loop. For calls that may stall: file
// systems, name resolution, writes to a terminal. `work` must touch nothing that the loop touches
// meanwhile; `done` always runs, and whoever may die earlier guards itself (a weak_ptr or an id).
void run_in_pool(Loop& loop, std::function<void()> work, std::function<void()> done);

}  // namespace muster
