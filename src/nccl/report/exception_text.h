// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>
#include <typeinfo>

#include "nccl/report/fixed_text.h"

namespace muster::comm::detail {

struct ExceptionText {
  std::string message;  // "std::runtime_error: loss is NaN"
  // "  caused by std::out_of_range: map::at\n" for each that is nested in it.
  std::string causes;
  std::string comm_error;  // the outermost ErrorException's code; "": none is among them
};

// The exception's type and text; of an ErrorException also its code and ranks.
ExceptionText text_of(const std::exception_ptr& exception);

// "an exception of type std::bad_alloc": what is said where text_of() throws; nullptr: another
// language's. Does without memory; the name is then the compiler's.
void describe_type(const std::type_info* type, FixedText& to);

// Of a type as the compiler names it.
std::string demangled(const char* name);

}  // namespace muster::comm::detail
