# SPDX-License-Identifier: Apache-2.0
"""What it costs to watch 64 workers for hangs: processor time of muster's processes, to the
nanosecond, in parts of one core, with the default --hang-timeout and without one, in turns. Healthy
workers touch a few pages now and then, and all that muster does is to watch them; talking ones write
a line every five seconds besides; quiet ones do nothing at all, and so get the closer look."""

import os
import statistics
import subprocess
import sys
import tempfile
import time

import peers

WORKERS = 64
HEALTHY = """
import time
while True:
    bytes(1 << 20)
    time.sleep(0.5)
"""
TALKING = """
import time
for i in range(10**9):
    bytes(1 << 20)
    if i % 10 == 0: print(i, flush=True)
    time.sleep(0.5)
"""
QUIET = "import threading; threading.Event().wait()"
DEFAULT = "300"


def cpu_ns(pids):
    """Of all threads; muster keeps its own."""
    total = 0
    for pid in pids:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/schedstat") as file:
                total += int(file.read().split()[0])
    return total


def cost(program, timeout, seconds):
    """Parts of one core."""
    with tempfile.TemporaryDirectory() as logs:
        process = peers.start(
            [os.path.join(peers.BUILD, "muster")],
            ["--nproc-per-node", WORKERS, "--log-dir", logs, "--console", "none"]
            + ["--hang-timeout", timeout, "--no-python", peers.SYSTEM_PYTHON, "-c", program],
        )
        try:
            time.sleep(15)  # all have started, and were looked at
            pids = peers.launcher_pids(process.pid)
            before, begun = cpu_ns(pids), time.monotonic()
            time.sleep(seconds)
            return (cpu_ns(pids) - before) / 1e9 / (time.monotonic() - begun)
        finally:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()


def main():
    args = peers.arguments(__doc__.splitlines()[0], rounds=1, seconds=60)
    print(peers.machine())
    for name, program in (("healthy", HEALTHY), ("talking", TALKING), ("quiet", QUIET)):
        parts = {DEFAULT: [], "0": []}
        for _ in range(args.rounds):
            for timeout, measured in parts.items():
                measured.append(cost(program, timeout, args.seconds))
        watched, alone = (statistics.median(measured) for measured in parts.values())
        print(
            f"{WORKERS} {name} workers: {watched:.4%} of a core with --hang-timeout {DEFAULT}, "
            f"{alone:.4%} with 0: {watched - alone:+.4%}"
        )
        sys.stdout.flush()


main()
