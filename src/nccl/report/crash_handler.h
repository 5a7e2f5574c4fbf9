// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "nccl/report/stack.h"

namespace muster::comm::detail {

// From now on a fatal signal leaves an error file and a stack on stderr before the process dies of
// it; also after an overflow of the calling thread's stack. Once in a process.
void watch_for_crashes(const char* error_file);

// Whether this thread may tell why the process ends: the first one that asks, for good.
bool claim_report();

// Whether it is this thread that tells, about an exception, and it is not done: then what it asked
// the exception has brought it here.
bool asking_exception();

// Waits, within bounds, until the one who claimed is done; of another thread only.
void wait_for_report();

// Writes the error file and then stderr: the stack, the message, what it was caused by. For the one
// who claimed, once.
void report_end(std::string_view message, const Stack& stack, Names names,
                std::string_view causes = {}, std::string_view comm_error = {});

}  // namespace muster::comm::detail
