// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/advice.h"

#include <algorithm>
#include <iterator>

namespace muster {

namespace {

constexpr Advice kAdvice[] = {
    {"exec_not_found", "the program, or what it needs to start, is not there",
     "Check the path on every node. If the file is there, the interpreter in its #! line or its "
     "loader is missing."},
    {"exec_denied", "the program may not be executed",
     "chmod +x it, or start it through its interpreter. A file system mounted noexec refuses too."},
    {"exec_bad_format", "this machine cannot execute the program",
     "A script needs a #! line; a binary must be built for this processor (`file PROGRAM` tells)."},
    {"spawn_failed", "the system refused a new process",
     "Look at `ulimit -u`, the container's limit of processes and the free memory."},
    {"killed", "somebody killed it with SIGKILL, and it was not muster",
     "Most often the kernel, out of memory: `dmesg` or `journalctl -k` names the process. Smaller "
     "batches, fewer data loader workers or a higher memory limit help."},
    {"segfault", "native code used memory that is not its own",
     "PYTHONFAULTHANDLER=1 shows the Python lines that led there, muster::comm's record() the C++ "
     "functions. Extensions built for another "
     "version of PyTorch, CUDA or NCCL are the usual cause."},
    {"abort", "native code gave up on purpose",
     "A failed assertion, an exception that nobody caught, damaged memory or a watchdog: the last "
     "lines on stderr say which."},
    {"bus_error", "mapped memory could not be had",
     "Usually /dev/shm is full (containers: a larger --shm-size), or somebody shortened a file "
     "that is mapped."},
    {"fpe", "native code divided an integer by zero",
     "PYTHONFAULTHANDLER=1 shows the Python lines that led there."},
    {"illegal_instruction", "it met an instruction that this processor does not have",
     "A library was built for a newer processor than this node's: compare the nodes' `lscpu`."},
    {"terminated", "somebody ended it with SIGTERM, and it was not muster",
     "A batch system at its time limit, a container that is stopped, or a person: ask who may "
     "signal this process."},
    {"hangup", "its terminal went away",
     "Something closed its session. Under muster workers have none: who sends it SIGHUP?"},
    {"interrupted", "somebody interrupted it with SIGINT, and it was not muster",
     "Ctrl-C is muster's to pass on: which other process signals this worker?"},
    {"signal", "a signal ended it that muster did not send",
     "Find out who sends this signal; muster passes on only what it was sent itself."},
    {"python_syntax_error", "Python cannot read the program",
     "Correct the line that is shown. Was it written for a newer Python than the one that runs?"},
    {"python_import_error", "a Python module is missing or broken",
     "Is the right environment active on every node? Try the import alone, with the same python."},
    {"script_not_found", "Python cannot open the script",
     "Relative paths begin where muster was started; every node needs the file there."},
    {"memory_error", "Python could not get more memory",
     "Look at the container's limit and at `ulimit -v`; smaller batches or fewer data loader "
     "workers help."},
    {"python_exception", "an exception that nobody caught ended it",
     "Read the traceback from its end upwards: the last line of your own code is the place. Errors "
     "of other ranks about lost connections follow from this one."},
    {"cpp_exception", "an exception of C++ that nobody caught ended it",
     "The stack ends where it was thrown; `addr2line -Cfe PROGRAM 0xADDRESS` gives the line of a "
     "program built with -g. Errors of other ranks about lost connections follow from this one."},
    {"exit_code", "it ended itself with an exit code",
     "Nothing says more than its last lines. Did it call sys.exit, or a script that it runs?"},
    {"hung", "it is stuck in the kernel and cannot be killed",
     "A network file system or a device does not answer: `dmesg` and /proc/PID/stack on that node "
     "tell which. It may need a reboot."},
    {"node_lost", "the muster of a whole node is gone",
     "Was that node rebooted, preempted or cut off from the network? What its own muster still "
     "wrote is in its run folder there."},
};
constexpr Advice kUnknown{};

}  // namespace

const Advice& advice_for(std::string_view kind) {
  const Advice* found = std::find_if(std::begin(kAdvice), std::end(kAdvice),
                                     [kind](const Advice& advice) { return advice.kind == kind; });
  return found == std::end(kAdvice) ? kUnknown : *found;
}

}  // namespace muster
