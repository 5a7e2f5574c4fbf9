# SPDX-License-Identifier: Apache-2.0
"""A worker for the PyTorch tests: gloo_worker.py WHAT [argument]. Says "done in attempt N"
at its end."""

import os
import signal
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

ATTEMPT = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
# Tensors that were in an operation stay here. PyTorch 1.13 hangs at the end if its gloo thread is
# the last to let go of one: it then needs the interpreter, which waits for that thread.
KEPT = []


def sum_of_ranks():
    value = torch.tensor([float(dist.get_rank())])
    KEPT.append(value)
    dist.all_reduce(value)
    world = dist.get_world_size()
    assert value.item() == world * (world - 1) / 2, value


def ddp():
    """Ten steps; afterwards all ranks have the same weights, which have moved."""
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(nn.Linear(4, 2))
    before = model.module.weight.detach().clone()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(10):
        torch.manual_seed(100 * step + dist.get_rank())
        optimizer.zero_grad()
        model(torch.randn(8, 4)).pow(2).mean().backward()
        optimizer.step()
    mine = model.module.weight.detach()
    all_weights = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    KEPT.extend([mine, *all_weights])
    dist.all_gather(all_weights, mine)
    assert all(torch.equal(mine, other) for other in all_weights)
    assert not torch.equal(mine, before)


def restart():
    """Rank 1 dies after the group was made, in as many attempts as the budget allows."""
    sum_of_ranks()
    dist.barrier()
    if dist.get_rank() == 1 and ATTEMPT < int(os.environ["TORCHELASTIC_MAX_RESTARTS"]):
        os.kill(os.getpid(), signal.SIGKILL)


def uneven():
    """Ranks leave the group at quite different times."""
    sum_of_ranks()
    dist.barrier()
    time.sleep(0.3 * dist.get_rank())


def main():
    what = sys.argv[1]
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    {"sum": sum_of_ranks, "ddp": ddp, "restart": restart, "uneven": uneven}[what]()
    dist.destroy_process_group()
    print(f"done in attempt {ATTEMPT}", flush=True)


main()
