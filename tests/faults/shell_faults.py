# SPDX-License-Identifier: Apache-2.0
"""Programs of any language, as the shell sees them: exit codes, signals, files, limits."""

import os
import signal

import corpus

add = corpus.group("programs")

add("exit 3 without a word", "exit 3", "exit_code", None)
add(
    "a message, then exit 2",
    "echo 'reading config' ; echo 'config.yaml: no such key: lr' >&2; exit 2",
    "exit_code",
    "config.yaml: no such key: lr",
)
add(
    "the message stands on stdout",
    "echo 'fatal: data set is empty'; exit 1",
    "exit_code",
    "fatal: data set is empty",
)
add(
    "a long log before the message",
    """
    seq -f 'step %g loss 0.25' 20000
    seq -f 'warning %g' 5000 >&2
    echo 'lost quorum' >&2; exit 9
    """,
    "exit_code",
    "lost quorum",
)
add(
    "no such loader",
    "{FAULTS}/needs_loader",
    "exec_not_found",
    None,
    language="command",
    ranks=1,
    rank=0,
)
add(
    "no such interpreter",
    "printf '#!/nowhere/sh\\n' >$T/bad.sh; chmod +x $T/bad.sh; exec $T/bad.sh",
    "exec_not_found",
    "bad.sh: not found",
)
add(
    "a file that is no program",
    "{HERE}/garbage",
    "exec_bad_format",
    None,
    language="command",
    rank=0,
    ranks=1,
)
add(
    "the script calls what is not there",
    "trainer --lr 0.1",
    "exec_not_found",
    "trainer: not found",
)
add(
    "the shell's command dies of a signal",
    "$FAULTS/native segfault; exit $?",
    "segfault",
    "Segmentation fault",
)
for name, kind in (
    ("KILL", "killed"),
    ("TERM", "terminated"),
    ("HUP", "hangup"),
    ("INT", "interrupted"),
    ("SEGV", "segfault"),
    ("ABRT", "abort"),
    ("BUS", "bus_error"),
    ("FPE", "fpe"),
    ("ILL", "illegal_instruction"),
    ("USR1", "signal"),
):
    add(f"SIG{name} to itself", f"kill -{name} $$; sleep 600", kind, None)


def kill_from_outside(scene):
    os.kill(scene.pid(1), signal.SIGKILL)


add(
    "SIGKILL from a stranger",
    "echo $$ >$T/pid.$RANK; exec sleep 600",
    "killed",
    None,
    act=kill_from_outside,
    everyone=True,
)
add(
    "no memory: killed by the kernel",
    """
    echo $$ >$GROUP/cgroup.procs
    exec $PYTHON -c 'b = [bytearray(1 << 20) for _ in range(400)]'
    """,
    "oom_kill",
    None,
    needs="memory cgroup",
)
add(
    "no memory: killed beside others",
    """
    echo $$ >$GROUP/cgroup.procs
    [ $RANK = 2 ] || exec sleep 600
    exec $PYTHON -c 'b = [bytearray(1 << 20) for _ in range(400)]'
    """,
    "oom_kill",
    None,
    needs="memory cgroup",
    everyone=True,
    ranks=4,
    rank=2,
)
add(
    "no memory: a child was killed",
    """
    echo $$ >$GROUP/cgroup.procs
    $PYTHON -c 'b = [bytearray(1 << 20) for _ in range(400)]'
    code=$?
    echo "preprocessing failed with $code" >&2
    exit 1
    """,
    "oom_kill",
    None,
    needs="memory cgroup",
)
add(
    "the disk is full",
    "dd if=/dev/zero of=$T/small/checkpoint bs=64k count=64",
    "disk_full",
    "No space left on device",
    needs="root, tmpfs",
)
add(
    "the disk is full, the code is its own",
    "echo step 1; head -c 1000000 /dev/zero >$T/small/shard || exit 17",
    "disk_full",
    "No space left on device",
    needs="root, tmpfs",
)
add(
    "a file too many",
    "ulimit -n 6; exec 3</dev/null 4</dev/null 5</dev/null; cat <$T/train.sh",
    "fd_limit",
    "Too many open files",
)
add(
    "a pipe too many",
    "ulimit -n 6; exec 3</dev/null 4</dev/null 5</dev/null; cat | cat",
    "fd_limit",
    "Pipe call failed",
)
add(
    "no right to read",
    "exec setpriv --reuid=65534 cat /etc/shadow",
    "permission_denied",
    "/etc/shadow: Permission denied",
    needs="root",
)
add(
    "a program that may not be run",
    "cp $T/train.sh $T/copy; chmod 644 $T/copy; exec $T/copy",
    "exec_denied",
    "Permission denied",
)
add(
    "a library is missing",
    "exec $FAULTS/needs_library",
    "library_missing",
    "libmuster_nowhere.so",
)
add(
    "a name that nobody knows",
    "exec curl -sS http://data.nowhere.invalid/shard.tar",
    "name_resolution",
    "data.nowhere.invalid",
)
add(
    "nobody listens",
    "exec curl -sS http://127.0.0.1:1/shard.tar",
    "connection_lost",
    "127.0.0.1",
    waits=True,
)
