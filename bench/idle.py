# SPDX-License-Identifier: Apache-2.0
"""How often an idle launcher wakes up: context switches a second of all its threads, with 8 teed
workers that say nothing."""

import os
import tempfile
import time

import peers


def switches(pids):
    total = 0
    for pid in pids:
        for thread in os.listdir(f"/proc/{pid}/task"):
            total += peers.field(pid, "voluntary_ctxt_switches", f"task/{thread}/status")
    return total


def wakeups(command, seconds):
    with tempfile.TemporaryDirectory() as logs:
        words = ["--nproc_per_node", 8, "--tee", 3, "--log_dir", logs]
        process = peers.start(command, [*words, "--no_python", "/bin/sleep", "600"])
        try:
            time.sleep(6)  # until it has started everything and is idle
            pids = peers.launcher_pids(process.pid)
            before = switches(pids)
            time.sleep(seconds)
            return (switches(pids) - before) / seconds
        finally:
            process.terminate()
            process.wait()


def main():
    args = peers.arguments(__doc__.splitlines()[0], rounds=3, seconds=10)
    print(peers.machine())
    results = {name: [] for name in args.launchers}
    for _ in range(args.rounds):
        for name, command in args.launchers.items():
            results[name].append(wakeups(command, args.seconds))
    peers.show("wake-ups of an idle launcher, 8 teed workers", "1/s", results, (2, "median"))


main()
