# SPDX-License-Identifier: Apache-2.0
"""Noisy workers through a launcher: 1 GB of 100-byte lines to log files and a prefixed console.

Time: wall clock around the whole launcher with --tee 3, its console in a file, for one worker and
for eight; the run fails if a byte of a log file or a line of the console is missing. Memory: the
highest resident set of the launcher's processes meanwhile, added up. Latency: eight workers write
500 lines a second each, stamped with the time; the console is a pipe that is read at once.
"""

import glob
import os
import select
import tempfile
import time

import peers

WRITER = os.path.join(peers.TOP, "build", "release", "bench", "tee_writer")
LINE = 100
WORKERS = (1, 8)


def words(workers, logs, *program):
    options = ["--nproc_per_node", workers, "--tee", 3, "--log_dir", logs, "--no_python"]
    return [*options, WRITER, *program]


def high_water(pids):
    total = 0
    for pid in pids:
        try:
            total += peers.field(pid, "VmHWM")
        except (OSError, KeyError):  # it has just ended
            pass
    return total / 1024


def flood(command, workers, total):
    """Wall seconds and MB."""
    each = total // workers // LINE * LINE
    with tempfile.TemporaryDirectory() as folder:
        console = os.path.join(folder, "console")
        memory = 0
        with open(console, "wb") as out:
            began = time.monotonic()
            process = peers.start(command, words(workers, folder, "flood", each), stdout=out)
            while process.poll() is None:
                time.sleep(0.05)
                try:
                    memory = max(memory, high_water(peers.launcher_pids(process.pid)))
                except OSError:
                    pass
            wall = time.monotonic() - began
        if process.returncode != 0:
            raise SystemExit(f"{command[0]} failed")
        check_complete(folder, console, workers, each)
    return wall, memory


def check_complete(folder, console, workers, each):
    logs = glob.glob(os.path.join(folder, "*", "attempt_0", "*", "stdout.log"))
    sizes = [os.path.getsize(log) for log in logs]
    if sizes != [each] * workers:
        raise SystemExit(f"log files of {sizes} bytes, expected {workers} of {each}")
    prefix = len("[default0]:")
    shown, expected = os.path.getsize(console), workers * each // LINE * (LINE + prefix)
    if shown != expected:
        raise SystemExit(f"a console of {shown} bytes, expected {expected}")


def latencies(command, workers, lines, rate):
    """Milliseconds from each line's write to its arrival, without the first second."""
    with tempfile.TemporaryDirectory() as folder:
        reader, writer = os.pipe()
        program = words(workers, folder, "pace", lines, rate)
        # Without it torchrun keeps lines in its own buffer.
        process = peers.start(command, program, stdout=writer, env={"PYTHONUNBUFFERED": "1"})
        os.close(writer)
        result, rest = [], b""
        while True:
            select.select([reader], [], [])
            chunk = os.read(reader, 1 << 20)
            now = time.monotonic_ns()
            if not chunk:
                break
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                stamp, number = line.split(b":", 1)[1].split()
                if int(number) >= rate:
                    result.append((now - int(stamp)) / 1e6)
        os.close(reader)
        process.wait()
    if len(result) != workers * (lines - rate):
        raise SystemExit(f"{len(result)} lines arrived, expected {workers * (lines - rate)}")
    return result


def main():
    args = peers.arguments(__doc__.splitlines()[0], rounds=3, megabytes=1000)
    print(peers.machine())
    total = args.megabytes * 1_000_000
    for workers in WORKERS:
        walls = {name: [] for name in args.launchers}
        sizes = {name: [] for name in args.launchers}
        for _ in range(args.rounds):
            for name, command in args.launchers.items():
                wall, size = flood(command, workers, total)
                walls[name].append(wall)
                sizes[name].append(size)
        title = f"{args.megabytes} MB from {workers} teed worker(s), wall"
        peers.show(title, "s", walls, (args.megabytes / 250, "median"))
        for name, values in walls.items():
            print(f"  {name:14} {args.megabytes / sorted(values)[len(values) // 2]:10.0f} MB/s")
        peers.show(f"launcher's memory with {workers} noisy worker(s)", "MB", sizes, (64, "median"))
    waits = {name: [] for name in args.launchers}
    for _ in range(args.rounds):
        for name, command in args.launchers.items():
            waits[name] += latencies(command, 8, 2500, 500)
    peers.show("from a line's write to its arrival, 8 x 500 lines/s", "ms", waits, (5, "p99"))


main()
