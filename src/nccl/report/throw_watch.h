// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "nccl/report/stack.h"

namespace muster::comm::detail {

// Calls body(argument). An exception that nobody below catches goes through, and the stack where it
// was thrown is then in thrown_at(): the last one of this thread's. Exceptions that are caught
// below cost nothing.
//
// An exception is thrown in two steps: the unwinder first asks each frame, from the throw upwards,
// whether it catches, and only when one has said yes does it go up again and destroy. Our frame
// says no, but being asked it knows that nobody below says yes, and at that moment the whole stack
// is still there. So nothing of the program is replaced (__cxa_throw, for one, belongs to whoever
// links it first, sanitizers among them) and no throw gets slower. It needs a frame with a routine
// of our own in its unwind table, which only assembly can say; on processors for which it is not
// written the stack stays empty.
void call_watched(void (*body)(void*), void* argument);

Stack& thrown_at();

// Whether a return address is in the frame above: where the part of the stack that belongs to the
// user ends.
bool in_watch(uintptr_t address);

}  // namespace muster::comm::detail
