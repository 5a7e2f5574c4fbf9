// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

namespace muster::comm {

// Runs a program's main so that its end can be explained: `int main() { return record(body); }`.
//
// An exception leaves the error file that torchrun and muster read (TORCHELASTIC_ERROR_FILE: the
// type, the text and the stack where it was thrown), is printed to stderr, and the result is 1.
// SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL and SIGTRAP leave one with a backtrace and then end the
// process as they would have (a handler that was there before is called after it). Without the
// variable only stderr gets it. May be called once in a process.
int record(const std::function<int()>& body);

// How far the training is, for the launcher's /status, its page and its metrics. Costs some tens of
// nanoseconds and never blocks; without muster it does nothing. Safe from any thread.
struct Progress {
  int64_t step = 0;
  std::optional<int64_t> total{};  // steps in all
  std::optional<double> loss{};
};
void report_progress(const Progress& progress);

// Numbers with names of their own, added to the last report: {{"accuracy", 0.93}, {"lr", 1e-3}}.
// At most kMaxValues names, of at most kMaxValueName bytes; what is beyond is left out.
constexpr int kMaxValues = 16;
constexpr int kMaxValueName = 31;
void report_values(std::initializer_list<std::pair<std::string_view, double>> values);

// Says "still alive" where there is no step to report, in a long phase between two steps, say.
void heartbeat();

}  // namespace muster::comm
