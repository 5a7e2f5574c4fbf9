# SPDX-License-Identifier: Apache-2.0
"""From the call to the exit with 64 workers of /bin/true, and what the launcher takes of memory.

Time: wall clock around the whole launcher, alternating between the launchers. Memory: the resident
set of the launcher's processes, added up, while 64 workers sleep.
"""

import statistics
import time

import peers


def wall(command, workers):
    words = ["--nproc_per_node", workers, "--no_python", "/bin/true"]
    for _ in range(3):  # torchrun 1.13 fails if its one fixed port is taken
        began = time.monotonic()
        if peers.start(command, words).wait() == 0:
            return (time.monotonic() - began) * 1000
    raise SystemExit(f"{command[0]} failed")


def resident(command, workers):
    words = ["--nproc_per_node", workers, "--no_python", "/bin/sleep", "600"]
    process = peers.start(command, words)
    try:
        sleeping = 0
        while sleeping < workers:
            time.sleep(0.1)
            pids = peers.launcher_pids(process.pid)
            with open(f"/proc/{pids[-1]}/task/{pids[-1]}/children") as file:
                sleeping = len(file.read().split())
        time.sleep(0.3)
        return sum(peers.field(pid, "VmRSS") for pid in peers.launcher_pids(process.pid)) / 1024
    finally:
        process.terminate()
        process.wait()


def main():
    args = peers.arguments(__doc__.splitlines()[0], rounds=7, workers=64)
    print(peers.machine())
    walls = {name: [] for name in args.launchers}
    sizes = {name: [] for name in args.launchers}
    for number in range(args.rounds):
        for name, command in args.launchers.items():
            repeats = 5 if name == "muster" else 1
            walls[name].append(
                statistics.median(wall(command, args.workers) for _ in range(repeats))
            )
            if number < 3:
                sizes[name].append(resident(command, args.workers))
    peers.show(f"{args.workers} workers of /bin/true, wall", "ms", walls, (60, "median"))
    peers.show(f"launcher's memory with {args.workers} workers", "MB", sizes, (12, "median"))


main()
