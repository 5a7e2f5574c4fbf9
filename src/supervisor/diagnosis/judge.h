// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "supervisor/diagnosis/causes.h"
#include "supervisor/diagnosis/diagnose.h"

namespace muster {

// True if this worker is a victim of our own stop rather than a cause: we signalled it before it
// ended, however it ended then (by that signal, with a code of its own, crashing in its teardown).
bool is_victim(const Evidence& evidence);

// Judges each of one node's workers: what they show, for find_causes(). Who was stopped by us may
// have failed before that, and only ended too slowly: a traceback that it had printed, a signal
// that is not ours. `finished` and `still_running` are the caller's to say.
AttemptEnds judge(std::span<const Evidence> in_order_of_death);

}  // namespace muster
