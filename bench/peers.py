# SPDX-License-Identifier: Apache-2.0
"""What the launcher benches share: the launchers compared, how they are run, and the tables."""

import argparse
import os
import statistics
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(HERE)
BUILD = os.environ.get("MUSTER_BUILD", os.path.join(TOP, "build", "release"))
WORKER = os.path.join(BUILD, "bench", "bench_worker")
SYSTEM_PYTHON = "/usr/bin/python3"
# Here workers die again and again, and at once: torchrun takes that for no reason to wait.
RESTARTS = {"PET_SAME_FAILURE_LIMIT": "0", "PET_RESTART_BACKOFF": "0"}


def launchers():
    """Name -> command. The newest torchrun lives in the chroot of scripts/pytorch-chroot."""
    return {
        "muster": [os.path.join(BUILD, "muster")],
        "torchrun 2.14": [os.path.join(TOP, "tests", "e2e", "torchrun")],
        "torchrun 1.13": [SYSTEM_PYTHON, os.path.join(HERE, "torchrun_1_13.py")],
    }


def arguments(description, rounds, **more):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--without", action="append", default=[], help="leave a launcher out")
    parser.add_argument(
        "--realtime",
        action="store_true",
        help="run the launchers before all else, on a machine that has other work",
    )
    for name, default in more.items():
        parser.add_argument("--" + name, type=type(default), default=default)
    args = parser.parse_args()
    if args.realtime:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))  # children inherit it
    args.launchers = {
        name: command for name, command in launchers().items() if name not in args.without
    }
    return args


def start(command, arguments, **options):
    """Options are spelt with underscores: torchrun 1.13 knows no others."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **RESTARTS, **options.pop("env", {})}
    options.setdefault("stdout", subprocess.DEVNULL)
    options.setdefault("stderr", subprocess.DEVNULL)
    words = [*command, *map(str, arguments)]
    return subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, **options)


def launcher_pids(pid):
    """muster is two processes, torchrun is one; workers lead sessions or groups of their own."""
    with open(f"/proc/{pid}/comm") as file:
        if file.read().strip() != "muster":
            return [pid]
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [pid, *map(int, file.read().split())]


def field(pid, name, file="status"):
    with open(f"/proc/{pid}/{file}") as lines:
        for line in lines:
            if line.startswith(name + ":"):
                return int(line.split()[1])
    raise KeyError(name)


class Stamps:
    """The file into which all ranks of all attempts note times; see bench_worker.cc."""

    def __init__(self, ranks, attempts):
        self.ranks = ranks
        self.row = struct.Struct(f"={2 + 2 * ranks}q")
        self.attempts = attempts
        self.file = tempfile.NamedTemporaryFile()
        self.file.truncate(8 * ranks + self.row.size * attempts)
        self.name = self.file.name

    def began(self, attempt):
        return self._read(attempt)[2 : 2 + self.ranks]

    def after_deaths(self):
        """Milliseconds from each death to SIGTERM at the last other rank, and to the next attempt."""
        rows = [self._read(attempt) for attempt in range(self.attempts)]
        told, again = [], []
        for row, following in zip(rows, rows[1:]):
            told.append((max(row[2 + self.ranks :]) - row[0]) / 1e6)
            again.append((max(following[2 : 2 + self.ranks]) - row[0]) / 1e6)
        return told, again

    def close(self):
        self.file.close()

    def _read(self, attempt):
        self.file.seek(8 * self.ranks + self.row.size * attempt)
        return self.row.unpack(self.file.read(self.row.size))


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def machine():
    with open("/proc/cpuinfo") as lines:
        model = next((line for line in lines if line.startswith("model name")), "?: unknown CPU")
    model = model.split(":", 1)[1].strip()
    return f"{model}, {os.cpu_count()} cores, Linux {os.uname().release}"


def show(title, unit, results, target=None):
    """results: name -> list of values. Medians, spread, and how many times muster is better."""
    print(f"\n{title} [{unit}]")
    mine = statistics.median(results["muster"])
    for name, values in results.items():
        middle = statistics.median(values)
        ratio = f"   {middle / mine:8.1f} x muster" if name != "muster" and mine > 0 else ""
        print(
            f"  {name:14} median {middle:10.2f}   min {min(values):10.2f}   "
            f"p99 {percentile(values, 0.99):10.2f}   max {max(values):10.2f}   n {len(values)}{ratio}"
        )
    if target is not None:
        value, what = target
        got = percentile(results["muster"], 0.99) if what == "p99" else mine
        verdict = "met" if got <= value else f"missed by {got - value:.2f}"
        print(f"  target: {what} {value} {unit}: {verdict}")
    sys.stdout.flush()
