// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace doubles {

// Faults that a test cannot provoke otherwise, from the environment:
//   DOUBLE_FAULTS="ncclCommAbort:block,cudaMalloc:fail=2@3,ncclCommInitRankConfig:delay=500"
// The name is an API function's, or "task" (whatever runs on a stream; a failure is the device's
// and stays) or "kernel" (what NCCL runs on a stream). block: it never returns. fail=N: it answers
// N. delay=N: it takes N ms longer. @n: only the n-th call of this process.
//
// To be called once at each function's beginning; gives what it must answer, 0 for nothing.
int fault(const char* name);

// An environment variable as a whole number.
long env_number(const char* name, long otherwise);

}  // namespace doubles
