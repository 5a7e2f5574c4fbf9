#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""all_reduce, broadcast and barrier of muster's worker library on Gloo against the same calls of
Gloo itself, in the same processes by turns, and against torch.distributed's gloo in the newest
PyTorch (scripts/pytorch-chroot). Microseconds a call, medians; target: at most 2 % or 1 us over
Gloo. With --quick a fraction of the time, for a test that it runs."""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent


def library(arguments):
    program = arguments.build / "bench/comm/comm_bench"
    out = subprocess.run([program, str(arguments.ranks), str(arguments.seconds)], check=True,
                         stdout=subprocess.PIPE, text=True, timeout=900).stdout
    rows = {}
    for line in out.splitlines():
        name, size, bare, wrapped, difference = line.split()
        rows[name, int(size)] = (float(bare), float(wrapped), float(difference))
    return rows


def pytorch(arguments):
    """The medians of PyTorch, none where there is no chroot."""
    with tempfile.TemporaryDirectory(prefix="comm-bench-") as folder:
        os.chmod(folder, 0o777)
        ranks = [subprocess.Popen(
            [TOP / "scripts/in-chroot", "python3", TOP / "bench/comm/torch_rank.py", str(rank),
             str(arguments.ranks), f"{folder}/meeting", str(arguments.seconds)],
            stdout=subprocess.PIPE, text=True, env={**os.environ, "GLOO_SOCKET_IFNAME": "lo"})
            for rank in range(arguments.ranks)]
        outs = [rank.communicate(timeout=900)[0] for rank in ranks]
    if any(rank.returncode for rank in ranks):
        print(outs[0].strip() or "PyTorch failed", file=sys.stderr)
        return {}
    rows = {}
    for line in outs[0].splitlines():
        words = line.split()
        if len(words) == 3 and words[1].isdigit():
            rows[words[0], int(words[1])] = float(words[2])
    return rows


def size_name(size):
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor:
            return f"{size // factor} {unit}"
    return f"{size} B"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=2, help="for each operation and size")
    parser.add_argument("--build", type=pathlib.Path, default=TOP / "build/release")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--without-pytorch", action="store_true")
    parser.add_argument("--realtime", action="store_true",
                        help="all ranks under SCHED_FIFO, for machines with other work (root)")
    arguments = parser.parse_args()
    if arguments.realtime:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    if arguments.quick:
        arguments.seconds = 0.05
    rows = library(arguments)
    peers = {} if arguments.without_pytorch else pytorch(arguments)
    print(f"{arguments.ranks} ranks; microseconds a call, medians")
    print(f"{'operation':<12}{'size':>8}{'gloo':>12}{'muster':>12}{'more':>9}{'%':>8}{'PyTorch':>12}")
    missed = 0
    for (name, size), (bare, wrapped, difference) in rows.items():
        percent = 100 * difference / bare
        good = difference <= 1 or percent <= 2
        missed += not good
        peer = f"{peers[name, size]:12.1f}" if (name, size) in peers else f"{'-':>12}"
        print(f"{name:<12}{size_name(size):>8}{bare:12.1f}{wrapped:12.1f}{difference:9.2f}"
              f"{percent:8.1f}{peer}{'' if good else '  over the target'}")
    print(f"{len(rows) - missed} of {len(rows)} within 2 % or 1 us")


if __name__ == "__main__":
    main()
