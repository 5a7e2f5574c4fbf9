// SPDX-License-Identifier: Apache-2.0
#include "supervisor/stacks/stack_text.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>
#include <utility>

#include "supervisor/stacks/native_stacks.h"

namespace muster {

namespace {

// Calls that tell what a rank does; those around them are in its file.
constexpr ptrdiff_t kInnermost = 5;
constexpr ptrdiff_t kOutermost = 3;
constexpr std::string_view kInterpreter = "(python)";

void add_native(std::string& text, const ThreadView& thread) {
  for (size_t i = 0; i < thread.native.size(); ++i) {
    const NativeFrame& frame = thread.native[i];
    text += "    #" + std::to_string(i) + " " + (frame.function.empty() ? "?" : frame.function);
    if (!frame.source.empty()) text += " at " + frame.source;
    if (!frame.module.empty()) text += " in " + frame.module;
    text += '\n';
  }
  if (!thread.native_trouble.empty()) {
    text += "    no native stack: " + thread.native_trouble + "\n";
  }
}

std::string where_in_kernel(const ThreadView& thread) {
  std::string where(state_words(thread.state));
  if (!thread.wait_channel.empty()) where += " in " + thread.wait_channel;
  if (!thread.system_call.empty()) where += " (" + thread.system_call + ")";
  return where;
}

void add_thread(std::string& text, const ThreadView& thread) {
  text += "  thread " + std::to_string(thread.tid) + " " + thread.name + ": " +
          where_in_kernel(thread) + "\n";
  for (const std::string& frame : thread.kernel)
    text += "    kernel: " + frame + "\n";
  for (const PythonFrame& frame : thread.python)
    text += "    python: " + frame.function + " at " + frame.file + ":" +
            std::to_string(frame.line) + "\n";
  add_native(text, thread);
}

void add_process(std::string& text, const ProcessView& process) {
  text += "\nprocess " + std::to_string(process.pid) + " " + process.name + "\n";
  if (process.threads.empty()) text += "  it is gone\n";
  if (!process.trouble.empty()) text += "  " + process.trouble + "\n";
  for (const ThreadView& thread : process.threads)
    add_thread(text, thread);
  if (process.threads_left_out > 0) {
    text += "  and " + std::to_string(process.threads_left_out) + " more threads\n";
  }
}

// How an interpreter gets from one of the program's functions to the next says nothing.
bool is_interpreter(std::string_view function) {
  static constexpr std::string_view kBegins[] = {
      "_PyEval_",  "PyEval_",      "_PyObject_", "PyObject_",       "_PyFunction_", "PyFunction_",
      "_PyVector", "PyVectorcall", "_PyCFunct",  "method_",         "cfunction_",   "PyCFunction",
      "run_mod",   "PyRun_",       "_PyRun_",    "run_eval_code",   "pyrun_",       "pymain_",
      "Py_Run",    "Py_BytesMain", "slot_tp_",   "object_vacall",   "type_call",    "partial_",
      "wrapper",   "builtin_exec", "builtin_ev", "import_find_and", "PyImport_",    "_PyImport"};
  return std::any_of(std::begin(kBegins), std::end(kBegins),
                     [&](std::string_view begin) { return function.starts_with(begin); });
}

bool is_start(std::string_view function) {
  return function == "_start" || function.starts_with("__libc_start") ||
         function == "start_thread" || function == "clone" || function == "clone3";
}

// "pthread_cond_wait < gloo::barrier < step (train.py:42) < main".
std::string calls_text(const ThreadView& thread) {
  std::vector<std::string> calls;
  auto add = [&](std::string call) {
    if (calls.empty() || calls.back() != call) calls.push_back(std::move(call));
  };
  for (const NativeFrame& frame : thread.native) {
    const std::string name = short_function_name(frame.function);
    if (name.empty() || is_start(name)) continue;
    const bool interpreted = is_interpreter(name);
    // From here on Python's own names say more.
    if (interpreted && !thread.python.empty()) break;
    add(interpreted ? std::string(kInterpreter) : name);
  }
  for (const PythonFrame& frame : thread.python) {
    const std::string file = frame.file.substr(frame.file.rfind('/') + 1);
    add(frame.function + " (" + file + ":" + std::to_string(frame.line) + ")");
  }
  // What it waits for, and what of the program it does.
  if (static_cast<ptrdiff_t>(calls.size()) > kInnermost + kOutermost) {
    const auto begin = calls.begin() + kInnermost;
    *begin = "...";
    calls.erase(begin + 1, calls.end() - kOutermost);
  }
  std::string text;
  for (const std::string& call : calls)
    text += (text.empty() ? "" : " < ") + call;
  return text;
}

}  // namespace

std::string rank_text(const RankView& view, const std::string& head) {
  std::string text = head + "\n";
  for (const ProcessView& process : view.processes)
    add_process(text, process);
  if (view.processes_left_out > 0) {
    text += "\nand " + std::to_string(view.processes_left_out) + " more processes\n";
  }
  return text;
}

std::string activity(const RankView& view) {
  if (view.processes.empty() || view.processes.front().threads.empty()) return "";
  const ThreadView& main = view.processes.front().threads.front();
  const std::string calls = calls_text(main);
  // Whoever sleeps is known by the call; what else keeps a thread is worth a word.
  const bool asleep = main.state == 'S';
  if (calls.empty()) return where_in_kernel(main);
  return asleep ? calls : where_in_kernel(main) + ": " + calls;
}

}  // namespace muster
