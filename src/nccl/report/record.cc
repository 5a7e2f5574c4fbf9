// SPDX-License-Identifier: Apache-2.0
#include <cxxabi.h>
#include <muster/comm/record.h>

#include <atomic>
#include <cstdlib>
#include <exception>

#include "nccl/report/crash_handler.h"
#include "nccl/report/exception_text.h"
#include "nccl/report/throw_watch.h"

namespace muster::comm {
namespace {

constexpr int kFailed = 1;

std::terminate_handler terminate_before = nullptr;

void tell_exception(const std::exception_ptr& exception, const detail::Stack& stack) {
  if (!detail::claim_report()) return detail::wait_for_report();
  const detail::ExceptionText text =
      exception != nullptr ? detail::text_of(exception)
                           : detail::ExceptionText{"std::terminate() was called", "", ""};
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
