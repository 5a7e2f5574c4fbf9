# SPDX-License-Identifier: Apache-2.0
"""What it costs to watch for hangs: processor time of muster's two processes, in parts of one core,
while 64 workers run for a while; healthy ones, which touch a few pages a second and write a line now
and then, and quiet ones, which do nothing at all and so get the closer look."""

import os
import subprocess
import sys
import tempfile
import time

import peers

WORKERS = 64
HEALTHY = """
import time
for i in range(10**9):
    bytes(1 << 20)
    if i % 20 == 0: print(i, flush=True)
    time.sleep(0.5)
"""
QUIET = "import threading; threading.Event().wait()"


def cpu_seconds(pids):
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


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
            before, begun = cpu_seconds(pids), time.monotonic()
            time.sleep(seconds)
            return (cpu_seconds(pids) - before) / (time.monotonic() - begun)
        finally:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()


def main():
    args = peers.arguments(__doc__.splitlines()[0], rounds=1, seconds=120)
    print(peers.machine())
    for name, program in (("healthy", HEALTHY), ("quiet", QUIET)):
        for timeout in ("0", "300:warn", "5:warn"):
            parts = [cost(program, timeout, args.seconds) for _ in range(args.rounds)]
            part = sorted(parts)[len(parts) // 2]
            print(f"{WORKERS} {name} workers, --hang-timeout {timeout}: {part:.4%} of a core")
            sys.stdout.flush()


main()
