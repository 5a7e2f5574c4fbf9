# SPDX-License-Identifier: Apache-2.0
"""The drill: every way in which a communicator can be hurt, with real processes.

    drill_test.py [gloo|nccl] [PART OF A NAME]...

Each cell (tests/nccl/drill/*_cells.cc) is a world of two to four processes that meet at a store of
its own. The processes themselves check what must come of it: typed errors, by their deadlines, and
that they live on and hold nothing. Several cells run at a time, since most of the time is waiting.
"""

import concurrent.futures
import os
import signal
import subprocess
import sys
import time

BUILD = os.environ["MUSTER_BUILD"]
DRILL = os.path.join(BUILD, "tests/nccl/drill/drill")
STORE = os.path.join(BUILD, "tests/helpers/muster_store_server")
AT_ONCE = 4  # cells
LIMIT = 90  # seconds for a cell: the time after which it counts as hanging
EXPECTED = {"exits": "0", "killed": "SIGKILL", "stopped": "stopped"}


class Store:
    """muster's store in a process of its own, until the cell is over or hurts it."""

    def __init__(self):
        self.process = subprocess.Popen([STORE], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.port = int(self.process.stdout.readline())

    def hurt(self, how):
        self.process.send_signal(signal.SIGKILL if how == "kill" else signal.SIGSTOP)
        if how == "kill":
            self.process.wait()

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def start(cell, backend, rank, port):
    name, ranks = cell[0], cell[1]
    environment = dict(
        os.environ, RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_RANK=str(rank),
        LOCAL_WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
        TORCHELASTIC_USE_AGENT_STORE="True", TORCHELASTIC_RESTART_COUNT="0",
    )
    return subprocess.Popen(
        [DRILL, backend, name], env=environment, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )


def is_stopped(process):
    try:
        with open(f"/proc/{process.pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "T"
    except OSError:
        return False


def end_of(process, expected, deadline):
    """How it ended: its exit status, the name of its signal, "stopped" or "hangs"."""
    while process.poll() is None:
        if expected == "stopped" and is_stopped(process):
            return "stopped"
        if time.monotonic() > deadline:
            return "hangs"
        time.sleep(0.02)
    code = process.returncode
    return str(code) if code >= 0 else signal.Signals(-code).name


def answer_store(processes, store, how):
    """Each rank says when the store may go; all are told once it has. What they printed before."""
    printed = [""] * len(processes)
    for rank, process in enumerate(processes):
        for line in process.stdout:
            printed[rank] += line
            if line == "AT store\n":
                break
    store.hurt(how)
    for process in processes:
        try:
            process.stdin.write("gone\n")
            process.stdin.flush()
        except BrokenPipeError:  # it has ended before; its exit status tells
            pass
    return printed


def run(cell, backend):
    """(what went wrong, or "", and everything that the ranks printed)."""
    _, ranks, last, store_fate = cell
    store = Store()
    processes = [start(cell, backend, rank, store.port) for rank in range(ranks)]
    deadline = time.monotonic() + LIMIT
    printed, wrong = [""] * ranks, []
    try:
        if store_fate:
            printed = answer_store(processes, store, store_fate)
        with concurrent.futures.ThreadPoolExecutor(ranks) as readers:
            texts = [readers.submit(process.stdout.read) for process in processes]
            expected = ["exits"] * (ranks - 1) + [last]
            ends = [end_of(p, e, deadline) for p, e in zip(processes, expected)]
            for process in processes:
                process.kill()  # a stopped or hanging one; nothing to one that has ended
            for rank in range(ranks):
                printed[rank] += texts[rank].result()
                if ends[rank] != EXPECTED[expected[rank]]:
                    wrong.append(f"rank {rank}: {ends[rank]}, not {EXPECTED[expected[rank]]}")
    finally:
        for process in processes:
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()
        store.end()
    return "; ".join(wrong), "".join(printed)


def cells():
    listed = subprocess.run([DRILL, "--list"], check=True, stdout=subprocess.PIPE, text=True)
    for line in listed.stdout.splitlines():
        name, ranks, last, store_fate = line.split("\t")
        yield name, int(ranks), last, store_fate


def main():
    backend = sys.argv[1] if len(sys.argv) > 1 else "gloo"
    wanted = [cell for cell in cells() if not sys.argv[2:] or any(w in cell[0] for w in sys.argv[2:])]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for cell, (wrong, printed) in zip(wanted, pool.map(lambda c: run(c, backend), wanted)):
            print(f"{'FAILED' if wrong else 'ok':7} {cell[1]} ranks  {cell[0]}", flush=True)
            if wrong:
                failed += 1
                print(f"        {wrong}\n{printed}", flush=True)
    print(f"{backend}: {len(wanted)} cells, {failed} failed")
    return 1 if failed or not wanted else 0


if __name__ == "__main__":
    sys.exit(main())
