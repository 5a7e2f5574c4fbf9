# SPDX-License-Identifier: Apache-2.0
"""An hour of healthy jobs without an alarm. The threshold is a sixtieth of the usual one, and so is
the time: jobs that are silent for most of it, and then do something, each time something else."""

import os
import sys

import harness
from harness import MusterTest

THRESHOLD = 5  # seconds; for the 300 of a real job
SECONDS = float(os.environ.get("MUSTER_SOAK_SECONDS", "60"))

# Each rank is quiet for up to two thirds of the threshold, and then shows life in one of the ways in
# which jobs do. Seeds are the ranks, so that all ranks together are quiet as often as may be.
WORKER = """
import os, random, subprocess, sys, tempfile, time

threshold, seconds, ways = float(sys.argv[1]), float(sys.argv[2]), sys.argv[3].split(",")
chance = random.Random(int(os.environ["RANK"]) if "alone" in sys.argv else 1)
leader = int(os.environ["RANK"]) == 0 or "alone" in sys.argv

def until(span, work):
    end = time.monotonic() + span
    while time.monotonic() < end:
        work()

def compute():  # as Python does: with memory
    until(1.0, lambda: sorted(str(i) for i in range(20000)))

def count():  # asks the kernel for nothing, and is long enough to be seen on a busy machine
    until(2.0, lambda: sum(range(1000)))

def line():
    print("still here", flush=True)

def checkpoint():
    with tempfile.TemporaryFile() as file:
        for _ in range(20):
            file.write(bytes(200_000))
            file.flush()
            time.sleep(0.05)

def load():  # a slow read, which takes memory
    pages = []
    for _ in range(20):
        pages.append(bytearray(400_000))
        time.sleep(0.05)

def step():
    with open(os.environ["MUSTER_PROGRESS"], "w") as file:
        file.write(f"step {chance.randrange(1000)}")

def child():  # a compiler, say
    subprocess.run([sys.executable, "-c", "sum(range(3_000_000))"], check=True)

begun = time.monotonic()
while time.monotonic() - begun < seconds:
    time.sleep(chance.uniform(0.2, 0.66) * threshold)
    way = chance.choice(ways)
    if leader:  # the others wait for it, as ranks do while one writes a checkpoint
        globals()[way]()
"""


class Soak(MusterTest):
    def soak(self, ways, *words, ranks=4):
        worker = self.path("worker.py")
        with open(worker, "w") as file:
            file.write(WORKER)
        run = self.muster(
            *("--nproc-per-node", ranks, "--hang-timeout", f"{THRESHOLD}:fail", "--console", "none"),
            *("--log-dir", self.path("logs"), "--no-python", sys.executable, worker),
            *(THRESHOLD, SECONDS / 3, ways, *words),
            seconds=SECONDS + 60,
        )
        self.assertNotIn("stalled", run.err)
        self.assert_code(run, 0)

    def test_one_rank_works_in_bursts_while_the_others_wait(self):
        self.soak("compute,line,checkpoint,load,step,child")

    def test_all_ranks_work_in_bursts_each_by_itself(self):
        self.soak("compute,line,checkpoint,load,step,child", "alone", ranks=2)

    def test_a_long_evaluation_says_nothing_and_computes(self):
        self.soak("count")


if __name__ == "__main__":
    harness.main()
