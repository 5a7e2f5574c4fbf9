// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/diagnose.h"

#include <doctest/doctest.h>
#include <errno.h>
#include <signal.h>

#include <algorithm>
#include <set>

#include "diagnosis/run_program.h"

namespace muster {

namespace {

event::FailureFound of_script(std::string_view code) {
  TestFolder folder;
  return diagnose(run_python(folder.write("train.py", code)));
}

event::FailureFound of_shell(const std::string& command) {
  return diagnose(run_program({"sh", "-c", command}));
}

event::FailureFound of_signal(int signal) {
  Evidence evidence;
  evidence.pid = 7;
  evidence.wait_status = signal;
  return diagnose(evidence);
}

event::FailureFound of_spawn(int code, std::string message = "") {
  Evidence evidence;
  evidence.spawn_errno = code;
  evidence.spawn_message = std::move(message);
  return diagnose(evidence);
}

}  // namespace

TEST_CASE("an exit code is told with the last lines of stderr") {
  event::FailureFound failure = of_shell("echo out; echo one >&2; echo two >&2; exit 3");
  CHECK(failure.kind == "exit_code");
  CHECK(failure.exit_code == 3);
  CHECK(failure.signal == 0);
  CHECK(failure.message == "exited with code 3");
  CHECK(failure.excerpt == std::vector<std::string>{"one", "two"});
  CHECK(failure.excerpt_source == "stderr");
  CHECK(failure.can_heal);
}

TEST_CASE("without stderr the last lines come from stdout") {
  event::FailureFound failure = of_shell("echo out; exit 3");
  CHECK(failure.excerpt == std::vector<std::string>{"out"});
  CHECK(failure.excerpt_source == "stdout");
  CHECK(of_shell("exit 3").excerpt_source == "");
}

TEST_CASE("a Python exception gives kind, place and the end of its traceback") {
  event::FailureFound failure = of_script("print('epoch 0')\nraise ValueError('bad shape')\n");
  CHECK(failure.kind == "python_exception");
  CHECK(failure.message == "ValueError: bad shape (train.py:2)");
  CHECK(failure.excerpt.front() == "Traceback (most recent call last):");
  CHECK(failure.excerpt.back() == "ValueError: bad shape");
  CHECK(failure.exit_code == 1);
  CHECK(failure.can_heal);
}

TEST_CASE("an exception that the program turned into its own exit code is still the reason") {
  event::FailureFound failure = of_script(
      "import sys, traceback\n"
      "try:\n    1 / 0\nexcept Exception:\n    traceback.print_exc()\n    sys.exit(9)\n");
  CHECK(failure.kind == "python_exception");
  CHECK(failure.exit_code == 9);
  CHECK(failure.message == "ZeroDivisionError: division by zero (train.py:3), exited with code 9");
}

TEST_CASE("an exception that was logged and survived is only a note") {
  event::FailureFound failure = of_script(
      "import sys, traceback\n"
      "try:\n    1 / 0\nexcept Exception:\n    traceback.print_exc()\n"
      "print('going on', file=sys.stderr)\nsys.exit(5)\n");
  CHECK(failure.kind == "exit_code");
  CHECK(failure.message == "exited with code 5");
  CHECK(failure.note.find("ZeroDivisionError: division by zero (train.py:3)") != std::string::npos);
  CHECK(failure.excerpt.back() == "going on");
}

TEST_CASE("a syntax or import error before any output cannot heal") {
  event::FailureFound syntax = of_script("def f(:\n");
  CHECK(syntax.kind == "python_syntax_error");
  CHECK_FALSE(syntax.can_heal);
  event::FailureFound import = of_script("import no_such_module_for_muster\n");
  CHECK(import.kind == "python_import_error");
  CHECK(import.message.starts_with("ModuleNotFoundError: No module named"));
  CHECK_FALSE(import.can_heal);
  CHECK(of_script("from os import no_such_name\n").kind == "python_import_error");
}

TEST_CASE("the same errors after output may heal") {
  CHECK(of_script("print('up')\nimport no_such_module_for_muster\n").can_heal);
  CHECK(of_script("import sys\nprint('up', file=sys.stderr)\nimport no_such_module_x\n").can_heal);
}

TEST_CASE("a script or module that is missing cannot heal") {
  TestFolder folder;
  event::FailureFound script = diagnose(run_python(folder.file("absent.py")));
  CHECK(script.kind == "script_not_found");
  CHECK(script.exit_code == 2);
  CHECK(script.message.find("absent.py") != std::string::npos);
  CHECK_FALSE(script.can_heal);
  event::FailureFound module = diagnose(run_program({"python3", "-m", "no_such_module_x"}));
  CHECK(module.kind == "python_import_error");
  CHECK(module.message.find("No module named") != std::string::npos);
  CHECK_FALSE(module.can_heal);
}

TEST_CASE("running out of memory in Python has a kind of its own") {
  event::FailureFound failure = of_script("raise MemoryError('no more')\n");
  CHECK(failure.kind == "memory_error");
  CHECK(failure.can_heal);
}

TEST_CASE("each signal has its kind, its name and 128 + n") {
  struct Row {
    int signal;
    const char* kind;
    const char* name;
  };
  for (Row row : {Row{SIGKILL, "killed", "SIGKILL"}, Row{SIGSEGV, "segfault", "SIGSEGV"},
                  Row{SIGABRT, "abort", "SIGABRT"}, Row{SIGBUS, "bus_error", "SIGBUS"},
                  Row{SIGFPE, "fpe", "SIGFPE"}, Row{SIGILL, "illegal_instruction", "SIGILL"},
                  Row{SIGTERM, "terminated", "SIGTERM"}, Row{SIGHUP, "hangup", "SIGHUP"},
                  Row{SIGINT, "interrupted", "SIGINT"}, Row{SIGUSR1, "signal", "SIGUSR1"},
                  Row{40, "signal", "SIGRTMIN+6"}}) {
    CAPTURE(row.name);
    event::FailureFound failure = of_signal(row.signal);
    CHECK(failure.kind == row.kind);
    CHECK(failure.signal == row.signal);
    CHECK(failure.exit_code == 128 + row.signal);
    CHECK(failure.message.starts_with("killed by " + std::string(row.name) + " (signal " +
                                      std::to_string(row.signal) + ")"));
    CHECK(failure.can_heal);
  }
  CHECK(of_signal(SIGKILL).message ==
        "killed by SIGKILL (signal 9): the kernel may have run out of memory");
}

TEST_CASE("a traceback before a deadly signal is a note, not the reason") {
  Evidence evidence = run_program({"sh", "-c", "kill -ABRT $$"});
  evidence.stderr_tail =
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nValueError: x\n";
  event::FailureFound failure = diagnose(evidence);
  CHECK(failure.kind == "abort");
  CHECK(failure.note.find("ValueError: x (a.py:1)") != std::string::npos);
}

TEST_CASE("a shell's 128 + n is explained") {
  event::FailureFound failure = of_shell("sh -c 'kill -KILL $$'; exit $?");
  CHECK(failure.kind == "killed");  // the shell says so
  CHECK(failure.exit_code == 137);
  CHECK(failure.signal == 0);
  CHECK(of_shell("exit 137").kind == "exit_code");
  CHECK(failure.note.find("SIGKILL") != std::string::npos);
}

TEST_CASE("what a script could not run may heal once it has done something") {
  const event::FailureFound at_once = of_shell("no_such_program_for_muster");
  CHECK(at_once.kind == "exec_not_found");
  CHECK_FALSE(at_once.can_heal);
  const event::FailureFound later = of_shell("echo step 1; no_such_program_for_muster");
  CHECK(later.kind == "exec_not_found");
  CHECK(later.can_heal);
}

TEST_CASE("what could not be started has a kind, a shell's exit code, and does not heal") {
  event::FailureFound missing = of_spawn(ENOENT, "nope: not found in PATH (/bin)");
  CHECK(missing.kind == "exec_not_found");
  CHECK(missing.exit_code == 127);
  CHECK(missing.message == "nope: not found in PATH (/bin)");
  CHECK_FALSE(missing.can_heal);
  event::FailureFound denied = of_spawn(EACCES);
  CHECK(denied.kind == "exec_denied");
  CHECK(denied.exit_code == 126);
  CHECK(denied.message == "could not be started: Permission denied");
  CHECK_FALSE(denied.can_heal);
  CHECK(of_spawn(ENOEXEC).kind == "exec_bad_format");
  event::FailureFound busy = of_spawn(EAGAIN);
  CHECK(busy.kind == "spawn_failed");
  CHECK(busy.can_heal);
}

TEST_CASE("an error file adds its message and call stack") {
  Evidence evidence = run_program({"sh", "-c", "exit 5"});
  evidence.error_file_present = true;
  evidence.error_file_text =
      R"({"message": {"message": "ValueError: recorded", "extraInfo": {"py_callstack":
      "Traceback (most recent call last):\n  File \"t.py\", line 3, in m\nValueError: recorded\n",
      "timestamp": "1700000000"}}})";
  event::FailureFound failure = diagnose(evidence);
  CHECK(failure.kind == "python_exception");
  CHECK(failure.exit_code == 5);
  CHECK(failure.message == "ValueError: recorded, exited with code 5");
  CHECK(failure.excerpt_source == "error file");
  CHECK(failure.excerpt.size() == 3);
}

TEST_CASE("an error file of plain text completes the exit code") {
  Evidence evidence = run_program({"sh", "-c", "exit 5"});
  evidence.error_file_present = true;
  evidence.error_file_text = R"({"message": "plain text"})";
  CHECK(diagnose(evidence).message == "exited with code 5: plain text");
}

TEST_CASE("a damaged error file is a note beside the exit code") {
  for (const char* text : {"", "{\"message\": {", "{}"}) {
    Evidence evidence = run_program({"sh", "-c", "exit 5"});
    evidence.error_file_present = true;
    evidence.error_file_text = text;
    event::FailureFound failure = diagnose(evidence);
    CHECK(failure.kind == "exit_code");
    CHECK(failure.exit_code == 5);
    CHECK(failure.note.starts_with("error file unreadable: "));
  }
}

TEST_CASE("an error file never changes how a signal death is named") {
  Evidence evidence = run_program({"sh", "-c", "kill -SEGV $$"});
  evidence.error_file_present = true;
  evidence.error_file_text = R"({"message": {"message": "E: before"}})";
  event::FailureFound failure = diagnose(evidence);
  CHECK(failure.kind == "segfault");
  CHECK(failure.note == "it had recorded: E: before");
}

TEST_CASE("a crash that a native program recorded is told with its stack") {
  Evidence evidence = run_program({"sh", "-c", "echo noise >&2; kill -SEGV $$"});
  evidence.error_file_present = true;
  evidence.error_file_text =
      R"({"message": {"message": "SIGSEGV: nothing is mapped at address 0x10", "extraInfo":
      {"py_callstack": "Stack (most recent call last):\n  _ZN5Model4stepEi in t+0x12\nSIGSEGV"}}})";
  event::FailureFound failure = diagnose(evidence);
  CHECK(failure.kind == "segfault");
  CHECK(failure.message.ends_with(": nothing is mapped at address 0x10"));
  CHECK(failure.message.find("SIGSEGV") == failure.message.rfind("SIGSEGV"));
  CHECK(failure.excerpt_source == "error file");
  REQUIRE(failure.excerpt.size() == 3);
  CHECK(failure.excerpt[1] == "  Model::step(int) in t+0x12");
  CHECK(failure.note.find("recorded") == std::string::npos);
}

TEST_CASE("an exception that a native program recorded has a kind of its own") {
  Evidence evidence = run_program({"sh", "-c", "echo noise >&2; exit 1"});
  evidence.error_file_present = true;
  evidence.error_file_text =
      R"({"message": {"message": "std::runtime_error: NaN", "extraInfo":
      {"py_callstack": "Stack (most recent call last):\n  main in t+0x12\nstd::runtime_error: NaN"}}})";
  event::FailureFound failure = diagnose(evidence);
  CHECK(failure.kind == "cpp_exception");
  CHECK(failure.message == "std::runtime_error: NaN");
  CHECK(failure.excerpt.size() == 3);
}

TEST_CASE("output of any bytes gives a message and excerpt of valid text") {
  Evidence evidence;
  evidence.wait_status = 1 << 8;
  evidence.stderr_tail =
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n"
      "ValueError: \xff\x1b[31m" +
      std::string(5000, 'x') + "\n";
  event::FailureFound failure = diagnose(evidence);
  CHECK(failure.message.find("\xff") == std::string::npos);
  CHECK(failure.message.find('\x1b') == std::string::npos);
  CHECK(failure.message.size() < 1700);
}

}  // namespace muster
