// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include "nccl/report/fixed_text.h"

namespace muster::comm::detail {

// Looks up what a signal handler may not. Once, before.
void prepare_signal_text();

// "SIGSEGV: nothing is mapped at address 0x10": what a fatal signal says about itself. In a signal
// handler.
void describe_signal(const siginfo_t& info, const void* ucontext, FixedText& to);

}  // namespace muster::comm::detail
