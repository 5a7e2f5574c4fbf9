// SPDX-License-Identifier: Apache-2.0
#include <signal.h>

#include "supervisor/diagnosis/rules.h"

// Texts of errno, as Python and as strerror write them, and of what programs make of them. Last
// come texts that only say that the program ended itself.

namespace muster {

namespace {

bool aborted(const Facts& facts) {
  return facts.status.exit_code == 128 + SIGABRT;  // or a shell's command was
}

// A shell says so of its command.
bool command_aborted(const Facts& facts) {
  return facts.exited() && aborted(facts);
}

bool on_full_disk(const Facts& facts) {
  return facts.disk_full();
}

constexpr Rule kRules[] = {
    {"memory_error", "^MemoryError", Reach::kWords},
    {"memory_error", "ArrayMemoryError", Reach::kWords},
    {"memory_error", "^std::bad_alloc", Reach::kWords},
    {"memory_error", "DefaultCPUAllocator: *allocate memory"},
    {"memory_error", "[Errno 12]", Reach::kWords},
    {"memory_error", "Cannot allocate memory", Reach::kLast},
    {"memory_error", "std::bad_alloc", Reach::kLast},

    {"disk_full", "[Errno 28]", Reach::kWords},
    {"disk_full", "[Errno 122]", Reach::kWords},
    {"disk_full", "No space left on device", Reach::kLast},
    {"disk_full", "Disk quota exceeded", Reach::kLast},
    {"disk_full", "database or disk is full", Reach::kLast},
    // PyTorch's archive writer finds out that its stream has not taken all bytes.
    {"disk_full", "inline_container.cc*unexpected pos"},
    {"disk_full", "PytorchStreamWriter failed writing", Reach::kLast, Role::kOfKind, on_full_disk},
    {"disk_full", "rite error", Reach::kLast, Role::kOfKind, on_full_disk},

    {"fd_limit", "[Errno 24]", Reach::kWords},
    {"fd_limit", "[Errno 23]", Reach::kWords},
    {"fd_limit", "oo many open files", Reach::kLast},
    {"fd_limit", "Pipe call failed", Reach::kLast},  // dash
    {"fd_limit", "received 0 items of ancdata", Reach::kWords},

    {"address_in_use", "[Errno 98]", Reach::kWords},
    {"address_in_use", "EADDRINUSE", Reach::kLast},
    {"address_in_use", "ddress already in use", Reach::kLast},

    {"name_resolution", "gaierror", Reach::kWords},
    {"name_resolution", "Name or service not known", Reach::kLast},
    {"name_resolution", "Temporary failure in name resolution", Reach::kLast},
    {"name_resolution", "No address associated with hostname", Reach::kLast},
    {"name_resolution", "ould not resolve host", Reach::kLast},
    {"name_resolution", "Failed to resolve '", Reach::kWords},

    {"connection_lost", "^ConnectionResetError", Reach::kWords},
    {"connection_lost", "^ConnectionRefusedError", Reach::kWords},
    {"connection_lost", "^ConnectionAbortedError", Reach::kWords},
    {"connection_lost", "^BrokenPipeError", Reach::kWords},
    {"connection_lost", "^torch.distributed.DistNetworkError", Reach::kWords},
    {"connection_lost", "Connection reset by peer", Reach::kLast},
    {"connection_lost", "onnection closed by peer", Reach::kLast},
    {"connection_lost", "Connection refused", Reach::kLast},
    {"connection_lost", "Connection timed out", Reach::kLast},
    {"connection_lost", "Broken pipe", Reach::kLast},
    {"connection_lost", "No route to host", Reach::kLast},
    {"connection_lost", "ailed to connect to ", Reach::kLast},
    {"connection_lost", "Network is unreachable", Reach::kLast},
    {"connection_lost", "Transport endpoint is not connected", Reach::kLast},

    {"permission_denied", "^PermissionError", Reach::kWords},
    {"permission_denied", "[Errno 13]", Reach::kWords},
    {"permission_denied", "Permission denied", Reach::kLast},
    {"permission_denied", "Operation not permitted", Reach::kLast},
    {"permission_denied", "ead-only file system", Reach::kLast},

    {"assertion", "Assertion `*' failed"},
    {"assertion", "Assertion `*` failed"},
    {"assertion", "Assertion '*' failed"},  // of the C++ library
    {"assertion", "Assertion failed: "},
    {"assertion", "INTERNAL ASSERT FAILED"},
    {"assertion", "Check failed: "},
    {"assertion", "CHECK failed"},

    {"abort", "*** stack smashing detected ***", Reach::kNear, Role::kOfKind, aborted},
    {"abort", "*** buffer overflow detected ***", Reach::kNear, Role::kOfKind, aborted},
    {"abort", "double free or corruption", Reach::kNear, Role::kOfKind, aborted},
    {"abort", "corrupted size vs. prev_size", Reach::kNear, Role::kOfKind, aborted},
    {"abort", "corrupted double-linked list", Reach::kNear, Role::kOfKind, aborted},
    {"abort", "munmap_chunk(): ", Reach::kNear, Role::kOfKind, aborted},
    {"abort", "free(): ", Reach::kNear, Role::kOfKind, aborted},
    {"abort", "malloc(): ", Reach::kNear, Role::kOfKind, aborted},
    {"abort", "realloc(): ", Reach::kNear, Role::kOfKind, aborted},
    {"abort", "Fatal glibc error: ", Reach::kNear, Role::kOfKind, aborted},
    {"abort", "pure virtual method called", Reach::kNear, Role::kOfKind, aborted},
    {"abort", "terminate called without an active exception", Reach::kNear, Role::kOfKind, aborted},
    {"abort", "LLVM ERROR: ", Reach::kNear, Role::kOfKind, aborted},
    {"abort", "Aborted", Reach::kLast, Role::kOfKind, command_aborted},
};

}  // namespace

std::span<const Rule> resource_rules() {
  return kRules;
}

}  // namespace muster
