# SPDX-License-Identifier: Apache-2.0
"""trainer.py STEPS [FAILS_AT]: says what a training would say; rank 2 has a division by zero in step FAILS_AT."""

import math
import os
import random
import sys
import time

RANK = int(os.environ["RANK"])


def learning_rate(step, fails_at):
    return 0.1 / (fails_at - step)


def train(steps, fails_at):
    random.seed(RANK)
    for step in range(steps):
        if RANK == 2 and fails_at:
            learning_rate(step, fails_at)
        loss = 2.3 * math.exp(-step / (steps / 3)) + 0.05 * random.random()
        print(f"step {step}/{steps} loss {loss:.4f} lr 0.1", flush=True)
        if step % 25 == 10 + RANK:
            print(f"WARNING: batch {step} took {random.randint(200, 900)} ms to load", file=sys.stderr, flush=True)
        time.sleep(0.1)


train(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
