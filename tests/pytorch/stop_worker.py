# SPDX-License-Identifier: Apache-2.0
"""Ranks that agree on the step at which they save and end when somebody stops the job.

The steps take each rank another time. Rank 0 sees muster's key in the store and tells the others.
"""

import os
import signal
import sys
import time

import torch
import torch.distributed as dist


def main():
    signal.signal(signal.SIGTERM, lambda *_: None)  # go on until the ranks have agreed
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    store = dist.TCPStore(
        os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False
    )
    print("rank", rank, "trains", flush=True)
    for step in range(100_000):
        time.sleep(0.002 * (rank + 1))
        if step % 10 == 0:
            stop = torch.tensor([int(rank == 0 and store.check(["muster/stop_requested"]))])
            dist.broadcast(stop, 0)
            if stop.item():
                print("saved at step", step, flush=True)
                sys.exit(0)


if __name__ == "__main__":
    main()
