// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace doubles {

// Faults that a test cannot provoke otherwise, from the environment:
//   DOUBLE_FAULTS="ncclCommAbort:block,cudaMalloc:fail=2@3,ncclCommInitRankConfig:delay=500"
// The name is an API function's or one of these:
//   task    whatever runs on a stream; fail=N: the device's error is N from then on
//   kernel  what NCCL runs on a stream; fail=N: the communicator's asynchronous error is N, and the
//           kernel waits until it is stopped; stay: it does that without an error
//   job     what a communicator that does not block does behind its calls: init, launches, split,
//           finalize; fail=N: it ends so; stay: it is in progress until it is aborted
// block: it never returns, not even when aborted. fail=N: it answers N. delay=N: it takes N ms
// longer. @n: only the n-th call of this process.
//
// To be called once at each function's beginning; gives what it must answer, 0 for nothing.
int fault(const char* name);
constexpr int kStay = -1;

// An environment variable as a whole number.
long env_number(const char* name, long otherwise);

}  // namespace doubles
