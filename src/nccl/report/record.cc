// SPDX-License-Identifier: Apache-2.0
#include <cxxabi.h>
#include <muster/comm/record.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <typeinfo>

#include "nccl/report/crash_handler.h"
#include "nccl/report/exception_text.h"
#include "nccl/report/throw_watch.h"

namespace muster::comm {
namespace {

constexpr int kFailed = 1;
constexpr size_t kMaxMessage = 512;  // of an exception that is told by its type alone

std::terminate_handler terminate_before = nullptr;

// Who claimed asks the exception for its text. That may end the program instead, by a what() that
// throws: then this is what is known.
struct Asked {
  const std::type_info* type = nullptr;
  const detail::Stack* stack = nullptr;
};
constinit Asked asked;

void tell_type() {
  std::array<char, kMaxMessage> memory{};
  detail::FixedText message(memory);
  detail::describe_type(asked.type, message);
  detail::report_end(message.text(), *asked.stack, detail::Names::kDemangled);
}

// nullptr: there is none.
void tell_exception(const std::exception_ptr& exception, const detail::Stack& stack) {
  if (detail::asking_exception()) return tell_type();
  if (!detail::claim_report()) return detail::wait_for_report();
  asked = {abi::__cxa_current_exception_type(), &stack};
  if (exception == nullptr) {
    return detail::report_end("std::terminate() was called", stack, detail::Names::kDemangled);
  }
  detail::ExceptionText text;
  try {
    text = detail::text_of(exception);
  } catch (...) {
    return tell_type();  // no memory is left, say
  }
  detail::report_end(text.message, stack, detail::Names::kDemangled, text.causes, text.comm_error);
}

// An exception of another thread, or one that met a noexcept. Where nobody catches, the stack is
// still there.
void on_terminate() {
  detail::Stack stack;
  stack.capture();
  tell_exception(std::current_exception(), stack);
  if (terminate_before != nullptr) terminate_before();
  std::abort();
}

struct Call {
  const std::function<int()>& body;
  int result = kFailed;
};

void run(void* argument) {
  auto* call = static_cast<Call*>(argument);
  call->result = call->body();
}

}  // namespace

int record(const std::function<int()>& body) {
  static std::atomic<bool> watching{false};
  if (!watching.exchange(true)) {
    detail::watch_for_crashes(std::getenv("TORCHELASTIC_ERROR_FILE"));
    terminate_before = std::set_terminate(on_terminate);
  }
  Call call{body};
  try {
    detail::call_watched(run, &call);
  } catch (...) {
    // pthread_exit(), which is no failure, or an exception of another language.
    if (abi::__cxa_current_exception_type() == nullptr) throw;
    tell_exception(std::current_exception(), detail::thrown_at());
  }
  return call.result;
}

}  // namespace muster::comm
