# SPDX-License-Identifier: Apache-2.0
"""A real PyTorch rank that fails, or hangs, in the way that it is told: torch_worker.py HOW."""

import datetime
import os
import signal
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Dataset

RANK = int(os.environ["RANK"])
LAST = int(os.environ["WORLD_SIZE"]) - 1
# What was in an operation stays: PyTorch 1.13 may hang at its end if gloo is the last to let go.
KEPT = []


class Samples(Dataset):
    """Item 5 is the bad one."""

    def __init__(self, how):
        self.how = how

    def __len__(self):
        return 16

    def __getitem__(self, index):
        if index == 5:
            if self.how == "raise":
                raise KeyError("sample 5 has no label")
            if self.how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.how == "segfault":
                os.kill(os.getpid(), signal.SIGSEGV)
            if self.how == "stuck":
                time.sleep(600)
        return torch.ones(3)


def reduce(size=4):
    value = torch.ones(size)
    KEPT.append(value)
    dist.all_reduce(value)


def train():
    """All ranks reduce until one of them is no more."""
    for _ in range(1000):
        reduce()


def load(how):
    for batch in DataLoader(Samples(how if RANK == LAST else ""), batch_size=2, num_workers=2):
        KEPT.append(batch)
        reduce()


def exception():
    """The last rank raises between two operations; the others wait for it."""
    reduce()
    if RANK == LAST:
        raise ValueError("loss is NaN at step 17")
    train()


def killed():
    reduce()
    if RANK == LAST:
        os.kill(os.getpid(), signal.SIGKILL)
    train()


def crash():
    reduce()
    if RANK == LAST:
        os.kill(os.getpid(), signal.SIGSEGV)
    train()


def slow_culprit():
    """Its connections go first, it itself much later than those that wait for it."""
    reduce()
    if RANK == LAST:
        try:
            raise RuntimeError("checkpoint is corrupt: /data/step_900.pt")
        finally:
            dist.destroy_process_group()
            KEPT.clear()
            time.sleep(0.5)
    train()


def missing_peer():
    """The last rank is elsewhere; the others' operation runs into its time limit."""
    reduce()
    if RANK == LAST:
        time.sleep(600)
    reduce()


def mismatched_sizes():
    reduce()
    reduce(4 + 4 * RANK)


def mismatched_shapes():
    model = nn.Linear(4, 2 if RANK == LAST else 3)
    nn.parallel.DistributedDataParallel(model)


def wrong_order():
    """One broadcasts what the others reduce."""
    reduce()
    value = torch.ones(4)
    KEPT.append(value)
    if RANK == LAST:
        dist.broadcast(value, 0)
    else:
        dist.all_reduce(value)
    dist.barrier()


def monitored_barrier():
    if RANK != LAST:
        dist.monitored_barrier(timeout=datetime.timedelta(seconds=2))
    time.sleep(600)


def barrier():
    if RANK == LAST:
        time.sleep(600)
    dist.barrier()


def shapes():
    torch.ones(3, 4) @ torch.ones(3, 4)


def autograd():
    weight = torch.ones(3, requires_grad=True)
    loss = (weight * float("nan")).sum()
    with torch.autograd.detect_anomaly():
        loss = torch.sqrt(weight - 2).sum()
        loss.backward()


def memory():
    torch.empty(1 << 46)


def cuda():
    torch.ones(3).to(f"cuda:{RANK}")


def nccl():
    dist.init_process_group("nccl")
    torch.cuda.set_device(RANK)
    dist.barrier()


def checkpoint():
    with open(os.environ["T"] + f"/model.{RANK}.pt", "wb") as file:
        file.write(b"PK\3\4 not a checkpoint")
    torch.load(os.environ["T"] + f"/model.{RANK}.pt")


def state_dict():
    nn.Linear(3, 4).load_state_dict(nn.Linear(4, 3).state_dict())


def index():
    nn.Embedding(10, 4)(torch.tensor([10]))


def own_key():
    store = dist.distributed_c10d._get_default_store()
    store.set_timeout(datetime.timedelta(seconds=2))
    store.get("checkpoint_ready")


def store_key():
    if RANK == LAST:
        time.sleep(600)
    own_key()


def unused_parameters():
    model = nn.parallel.DistributedDataParallel(nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)]))
    for _ in range(2):
        model.module[0](torch.ones(2)).sum().backward()
        model(torch.ones(2))


HOWS = {
    "data_raises": lambda: load("raise"),
    "data_killed": lambda: load("kill"),
    "data_segfault": lambda: load("segfault"),
    "data_stuck": lambda: load("stuck"),
}
ALONE = ("shapes", "autograd", "memory", "cuda", "checkpoint", "state_dict", "index")
BY_THE_FIRST = ("nccl",)


def main():
    how = sys.argv[1]
    action = HOWS.get(how) or globals()[how]
    torch.set_num_threads(1)
    if how == "no_rendezvous" and RANK == LAST:
        time.sleep(600)
    limit = datetime.timedelta(seconds=float(os.environ.get("LIMIT", "1800")))
    if how != "nccl":
        dist.init_process_group("gloo", timeout=limit)
    if how in ALONE:
        if RANK == LAST:
            action()
        train()
    else:
        action()


def no_rendezvous():
    train()


if __name__ == "__main__":
    main()
