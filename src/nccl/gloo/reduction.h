// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/comm/data_type.h>

#include <cstddef>

// What is done with the elements. Whole numbers wrap around, as in NCCL.
namespace muster::comm::detail {

// out[i] = a[i] op b[i]; `out` may be `a` or `b`. kAverage adds: divide() comes at the end.
using ReduceFunction = void (*)(void* out, const void* a, const void* b, size_t count);
ReduceFunction reduce_function(DataType type, ReduceOp op);

// Divides in place; whole numbers are rounded towards zero.
void divide(void* data, size_t count, DataType type, int divisor);

// Numbers of 16 bits would lose much if each step were rounded (256 + 1 is 256 in bfloat16), and
// the sum of an average may be beyond the range of its type. So they are added and multiplied as
// float32 and rounded once.
bool needs_float(DataType type, ReduceOp op);
void widen(float* out, const void* in, size_t count, DataType type);
void accumulate(float* sum, const void* in, size_t count, DataType type, ReduceOp op);
// An average is divided by `ranks` first.
void narrow(void* out, const float* sum, size_t count, DataType type, ReduceOp op, int ranks);

}  // namespace muster::comm::detail
