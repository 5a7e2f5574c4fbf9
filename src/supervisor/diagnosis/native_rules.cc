// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/rules.h"

namespace muster {

namespace {

template <int kCode>
bool exited_with(const Facts& facts) {
  return facts.exited() && facts.status.exit_code == kCode;
}

constexpr Rule kRules[] = {
    // Sanitizers end a process by exit codes of their own or by abort().
    {"sanitizer", "==ERROR: *Sanitizer: ", Reach::kAnywhere},
    {"sanitizer", "WARNING: MemorySanitizer: ", Reach::kAnywhere},
    {"sanitizer", "WARNING: ThreadSanitizer: ", Reach::kAnywhere, Role::kOfKind, exited_with<66>},
    // The loader, and Python when it loads an extension.
    {"library_missing", "error while loading shared libraries: "},
    {"library_missing", ": symbol lookup error: "},
    {"library_missing", "version `*' not found (required by "},
    {"library_missing", ": cannot open shared object file"},
    {"library_missing", "^ImportError: *: undefined symbol: ", Reach::kWords},
    {"library_missing", "^OSError: *: undefined symbol: ", Reach::kWords},

    // What a shell says of a command that it cannot run.
    {"exec_not_found", ": not found", Reach::kLast, Role::kOfKind, exited_with<127>},
    {"exec_not_found", ": command not found", Reach::kLast, Role::kOfKind, exited_with<127>},
    {"exec_not_found", ": No such file or directory", Reach::kLast, Role::kOfKind,
     exited_with<127>},
    {"exec_denied", ": Permission denied", Reach::kLast, Role::kOfKind, exited_with<126>},
    {"exec_bad_format", ": Exec format error", Reach::kLast, Role::kOfKind, exited_with<126>},
    {"exec_bad_format", ": cannot execute binary file", Reach::kLast, Role::kOfKind,
     exited_with<126>},

    // And of one that died under it: it exits with 128 + n.
    {"segfault", "Segmentation fault", Reach::kLast, Role::kOfKind, exited_with<139>},
    {"killed", "Killed", Reach::kLast, Role::kOfKind, exited_with<137>},
    {"bus_error", "Bus error", Reach::kLast, Role::kOfKind, exited_with<135>},
    {"fpe", "Floating point exception", Reach::kLast, Role::kOfKind, exited_with<136>},
    {"illegal_instruction", "Illegal instruction", Reach::kLast, Role::kOfKind, exited_with<132>},

    // Other languages' own words for an exception that nobody caught. They have no kinds.
    {"exit_code", "^panic: ", Reach::kNear, Role::kOfKind, exited_with<2>},        // Go
    {"exit_code", "^fatal error: ", Reach::kNear, Role::kOfKind, exited_with<2>},  // Go
    {"exit_code", "^thread '*' panicked at ", Reach::kNear, Role::kOfKind, exited_with<101>},
    {"exit_code", "^Exception in thread \"main\" ", Reach::kNear, Role::kOfKind, exited_with<1>},
    {"exit_code", "^ERROR: LoadError: ", Reach::kNear, Role::kOfKind, exited_with<1>},  // Julia

    // "a.cc:3:14: runtime error: ...". Go's panics may hold the same.
    {"sanitizer", ":*:*: runtime error: ", Reach::kNear},

    // Python before it runs anything: no traceback, one line.
    {"script_not_found", ": can't open file ", Reach::kLast, Role::kOfKind, exited_with<2>},
    {"python_import_error", ": No module named ", Reach::kLast, Role::kOfKind, exited_with<1>},
    {"python_import_error", ": Error while finding module specification for ", Reach::kLast,
     Role::kOfKind, exited_with<1>},
    {"python_syntax_error", "^SyntaxError", Reach::kWords},
    {"python_syntax_error", "^IndentationError", Reach::kWords},
    {"python_syntax_error", "^TabError", Reach::kWords},
    {"python_import_error", "^ModuleNotFoundError", Reach::kWords},
    {"python_import_error", "^ImportError", Reach::kWords},
};

}  // namespace

std::span<const Rule> native_rules() {
  return kRules;
}

}  // namespace muster
