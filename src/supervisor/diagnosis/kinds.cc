// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/kinds.h"

#include <algorithm>
#include <iterator>

namespace muster {

namespace {

constexpr bool kVictim = true;
constexpr bool kCause = false;

constexpr FailureKind kKinds[] = {
    // It never ran.
    {"exec_not_found", Heals::kUnlessFirstOutput, kCause,
     "the program, or what it needs to start, is not there",
     "Check the path on every node. If the file is there, the interpreter in its #! line or its "
     "loader is missing."},
    {"exec_denied", Heals::kUnlessFirstOutput, kCause, "the program may not be executed",
     "chmod +x it, or start it through its interpreter. A file system mounted noexec refuses too."},
    {"exec_bad_format", Heals::kUnlessFirstOutput, kCause,
     "this machine cannot execute the program",
     "A script needs a #! line; a binary must be built for this processor (`file PROGRAM` tells)."},
    {"spawn_failed", Heals::kYes, kCause, "the system refused a new process",
     "Look at `ulimit -u`, the container's limit of processes and the free memory."},
    {"library_missing", Heals::kUnlessFirstOutput, kCause,
     "a shared library, or a version or symbol of it, is not there",
     "`ldd FILE` on that node tells which. LD_LIBRARY_PATH or the environment differs from the one "
     "that it was built in; mixed versions of PyTorch and its extensions do the same."},

    // A signal ended it.
    {"oom_kill", Heals::kYes, kCause, "the kernel killed it because memory had run out",
     "Smaller batches, fewer data loader workers, or a higher limit of memory (docker --memory, "
     "Slurm --mem, Kubernetes resources.limits.memory)."},
    {"killed", Heals::kYes, kCause, "somebody killed it with SIGKILL, and it was not muster",
     "Most often the kernel, out of memory: `dmesg` or `journalctl -k` names the process. Smaller "
     "batches, fewer data loader workers or a higher memory limit help."},
    {"segfault", Heals::kYes, kCause, "native code used memory that is not its own",
     "PYTHONFAULTHANDLER=1 shows the Python lines that led there, muster::comm's record() the C++ "
     "functions. Extensions built for another version of PyTorch, CUDA or NCCL are the usual "
     "cause."},
    {"abort", Heals::kYes, kCause, "native code gave up on purpose",
     "A failed check, damaged memory or a watchdog: the last lines on stderr say which."},
    {"bus_error", Heals::kYes, kCause, "mapped memory could not be had",
     "Usually /dev/shm is full (containers: a larger --shm-size), or somebody shortened a file "
     "that is mapped."},
    {"fpe", Heals::kYes, kCause, "native code divided an integer by zero",
     "PYTHONFAULTHANDLER=1 shows the Python lines that led there."},
    {"illegal_instruction", Heals::kYes, kCause,
     "it met an instruction that this processor does not have",
     "A library was built for a newer processor than this node's: compare the nodes' `lscpu`."},
    {"terminated", Heals::kYes, kCause, "somebody ended it with SIGTERM, and it was not muster",
     "A batch system at its time limit, a container that is stopped, or a person: ask who may "
     "signal this process."},
    {"hangup", Heals::kYes, kCause, "its terminal went away",
     "Something closed its session. Under muster workers have none: who sends it SIGHUP?"},
    {"interrupted", Heals::kYes, kCause,
     "somebody interrupted it with SIGINT, and it was not muster",
     "Ctrl-C is muster's to pass on: which other process signals this worker?"},
    {"signal", Heals::kYes, kCause, "a signal ended it that muster did not send",
     "Find out who sends this signal; muster passes on only what it was sent itself."},

    // What the language's own machinery says.
    {"python_syntax_error", Heals::kUnlessFirstOutput, kCause, "Python cannot read the program",
     "Correct the line that is shown. Was it written for a newer Python than the one that runs?"},
    {"python_import_error", Heals::kUnlessFirstOutput, kCause,
     "a Python module is missing or broken",
     "Is the right environment active on every node? Try the import alone, with the same python."},
    {"script_not_found", Heals::kUnlessFirstOutput, kCause, "Python cannot open the script",
     "Relative paths begin where muster was started; every node needs the file there."},
    {"python_exception", Heals::kYes, kCause, "an exception that nobody caught ended it",
     "Read the traceback from its end upwards: the last line of your own code is the place. Errors "
     "of other ranks about lost connections follow from this one."},
    {"cpp_exception", Heals::kYes, kCause, "an exception of C++ that nobody caught ended it",
     "muster::comm's record() shows the stack that threw it; `addr2line -Cfe PROGRAM 0xADDRESS` "
     "gives the line of a program built with -g. Errors of other ranks about lost connections "
     "follow from this one."},
    {"assertion", Heals::kYes, kCause, "a check in native code failed",
     "The line names the condition and where it stands. It is a mistake in that code, or in what "
     "it was given."},
    {"sanitizer", Heals::kYes, kCause, "a sanitizer found a fault in native code and ended it",
     "Its report on stderr has the stacks of the access, the allocation and the release."},

    // Resources.
    {"memory_error", Heals::kYes, kCause, "the program could not get more memory",
     "Look at the container's limit and at `ulimit -v`; smaller batches or fewer data loader "
     "workers help."},
    {"disk_full", Heals::kYes, kCause, "a file system has no room left, or its quota is used up",
     "`df -h` and `df -i` on that node, of the folder that the line names; for shared memory a "
     "larger /dev/shm (containers: --shm-size)."},
    {"fd_limit", Heals::kYes, kCause, "too many files are open",
     "Raise `ulimit -n`; in PyTorch torch.multiprocessing.set_sharing_strategy('file_system') "
     "needs fewer. If the number grows with time, something does not close its files."},
    {"permission_denied", Heals::kYes, kCause, "it may not do what it tried",
     "Who owns the file or device that the line names, and does every node run as that user?"},
    {"address_in_use", Heals::kYes, kCause, "another process listens on its port",
     "`ss -ltnp` on that node names it. Leave ports to muster (MASTER_PORT is free for this job) "
     "or bind port 0."},
    {"name_resolution", Heals::kYes, kCause, "a host name could not be resolved",
     "`getent hosts NAME` on that node; look at /etc/resolv.conf and the cluster's DNS."},
    {"data_worker_died", Heals::kYes, kCause, "a data loader's process died under it",
     "Killed: memory ran out (fewer workers, smaller prefetch). Bus error: /dev/shm is full "
     "(containers: a larger --shm-size). num_workers=0 shows an exception where it happens."},

    // Communication: usually another rank's doing.
    {"connection_lost", Heals::kYes, kVictim, "a connection to another process broke",
     "Another rank ended, or a machine or network between: look for the rank that failed first."},
    {"store_timeout", Heals::kYes, kVictim, "it waited in the store for what nobody wrote",
     "A rank that never came so far: look for the one that is dead, stuck or slower to start."},
    {"collective_timeout", Heals::kYes, kVictim, "a collective did not end in time",
     "A rank is missing from it: dead, stuck, or on another way through the program."},
    {"collective_mismatch", Heals::kYes, kCause,
     "ranks called collectives that do not fit together",
     "The line says what was called. All ranks must call the same ones, in the same order, with "
     "the same sizes and types: look for a branch that depends on the rank or on its data."},
    {"gloo_error", Heals::kYes, kCause, "gloo reports an error",
     "GLOO_SOCKET_IFNAME chooses the interface; host names must not resolve to 127.0.1.1 where "
     "several nodes take part."},
    {"nccl_error", Heals::kYes, kCause, "NCCL reports an error",
     "NCCL_DEBUG=WARN names the call that failed. NCCL_SOCKET_IFNAME chooses the interface."},
    {"nccl_timeout", Heals::kYes, kVictim, "a collective of NCCL did not end in time",
     "A rank is missing from it: dead, stuck, or on another way through the program. "
     "TORCH_NCCL_DESYNC_DEBUG=1 names it the next time."},

    // GPUs.
    {"cuda_oom", Heals::kYes, kCause, "the GPU's memory is full",
     "A smaller batch, checkpointed activations, or PYTORCH_CUDA_ALLOC_CONF=expandable_segments:"
     "True. `nvidia-smi` shows what else runs there."},
    {"cuda_error", Heals::kYes, kCause, "a call of CUDA failed",
     "CUDA_LAUNCH_BLOCKING=1 makes it appear where it happens; compute-sanitizer finds wrong "
     "accesses. An index out of range is the usual cause of a device-side assert."},
    {"gpu_fault", Heals::kYes, kCause, "the GPU or its links failed",
     "The kernel's log (`dmesg | grep Xid`) and `nvidia-smi -q` tell more; take the node out and "
     "have the GPU reset or replaced."},
    {"driver_mismatch", Heals::kNo, kCause, "the GPU's driver does not fit its libraries",
     "Compare `nvidia-smi` with the CUDA version of the program; after an update of the driver the "
     "node needs a reboot."},
    {"duplicate_gpu", Heals::kNo, kCause, "two ranks use the same GPU",
     "Each rank needs its own: torch.cuda.set_device(int(os.environ['LOCAL_RANK'])), and no more "
     "ranks than GPUs on a node."},
    {"too_few_gpus", Heals::kNo, kCause, "there is no GPU for this rank",
     "Does --nproc-per-node fit the node's GPUs (`nvidia-smi -L`) and CUDA_VISIBLE_DEVICES?"},

    // Found by the job, not by one worker's end.
    {"hung", Heals::kNo, kCause, "it is stuck and does not end",
     "In the kernel: a network file system or a device does not answer, `dmesg` and "
     "/proc/PID/stack on that node tell which. Else its saved stacks show where it waits."},
    {"finished_early", Heals::kYes, kCause, "a rank finished while others still waited for it",
     "Ranks did not do the same number of steps: unequal data, or a break on some of them only."},
    {"stopped_by_user", Heals::kNo, kCause, "somebody stopped the job", "Its sender is named."},
    {"stopped_by_scheduler", Heals::kNo, kCause, "the batch system or container runtime stopped it",
     "A time limit, a preemption or a drained node: the scheduler's own log says why."},
    {"node_lost", Heals::kYes, kCause, "the muster of a whole node is gone",
     "Was that node rebooted, preempted or cut off from the network? What its own muster still "
     "wrote is in its run folder there."},
    {"coordinator_lost", Heals::kYes, kCause, "the node that decides for all cannot be reached",
     "Was it rebooted or cut off from the network? Its own run folder has the last events."},
    {"rendezvous_timeout", Heals::kYes, kCause, "not enough nodes came in time",
     "The nodes that came are named; on the others look at muster's own output."},

    {"exit_code", Heals::kYes, kCause, "it ended itself with an exit code",
     "Nothing says more than its last lines. Did it call sys.exit, or a script that it runs?"},
};
constexpr FailureKind kUnknown{};

}  // namespace

std::span<const FailureKind> failure_kinds() {
  return kKinds;
}

const FailureKind& failure_kind(std::string_view name) {
  const FailureKind* found =
      std::find_if(std::begin(kKinds), std::end(kKinds),
                   [name](const FailureKind& kind) { return kind.name == name; });
  return found == std::end(kKinds) ? kUnknown : *found;
}

}  // namespace muster
