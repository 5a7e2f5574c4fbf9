# SPDX-License-Identifier: Apache-2.0
"""Trains a small network on 8 x 8 images of handwritten digits, data-parallel on CPUs.

Runs under muster or torchrun, with PyTorch 1.13 and later. Rank 0 keeps a checkpoint; a restarted
job goes on from it.
"""

import argparse
import csv
import gzip
import os
import queue
import signal

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

HERE = os.path.dirname(os.path.abspath(__file__))
TRAINING_IMAGES = 1400  # of 1,797; the others are the test set


def load_digits():
    with gzip.open(os.path.join(HERE, "digits.csv.gz"), "rt") as file:
        rows = torch.tensor([[float(cell) for cell in row] for row in csv.reader(file)])
    shuffled = rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(1))]
    images, digits = shuffled[:, :64] / 16, shuffled[:, 64].long()
    return (
        TensorDataset(images[:TRAINING_IMAGES], digits[:TRAINING_IMAGES]),
        TensorDataset(images[TRAINING_IMAGES:], digits[TRAINING_IMAGES:]),
    )


def save_checkpoint(path, **state):
    # Written under another name first: a kill in the middle leaves the last one whole.
    torch.save(state, path + ".partial")
    os.replace(path + ".partial", path)


def accuracy(model, test_set):
    images, digits = test_set.tensors
    with torch.no_grad():
        return (model(images).argmax(dim=1) == digits).float().mean().item()


def wait_for_a_shard():
    queue.Queue().get()  # nobody puts one in


def hurt_if_asked(args, rank, epoch):
    if os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0":
        return
    if epoch == args.die_at_epoch and rank == args.die_rank:
        os.kill(os.getpid(), signal.SIGKILL)
    if epoch == args.hang_at_epoch and rank == args.hang_rank:
        wait_for_a_shard()


# The mean loss over this rank's part of the images. It is not averaged over the ranks: PyTorch 1.13
# can hang at its end if an operation of the group held a tensor that Python owns.
def train_epoch(model, loader, optimizer, middle):
    total = 0.0
    for step, (images, digits) in enumerate(loader):
        if step == len(loader) // 2:
            middle()
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), digits)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch", type=int, default=14, help="images per worker and step")
    parser.add_argument("--checkpoint", help="file to resume from and to write after each epoch")
    parser.add_argument("--die-at-epoch", type=int, help="kill one rank here, on the first attempt")
    parser.add_argument("--die-rank", type=int, default=1)
    parser.add_argument("--hang-at-epoch", type=int, help="stop one rank's work here, likewise")
    parser.add_argument("--hang-rank", type=int, default=1)
    return parser.parse_args()


def main():
    args = arguments()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(1)

    training_set, test_set = load_digits()
    sampler = DistributedSampler(training_set, seed=1)
    loader = DataLoader(training_set, batch_size=args.batch, sampler=sampler)
    network = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    model = DistributedDataParallel(network)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)

    first_epoch = 0
    if args.checkpoint and os.path.exists(args.checkpoint):
        state = torch.load(args.checkpoint)
        network.load_state_dict(state["network"])
        optimizer.load_state_dict(state["optimizer"])
        first_epoch = state["epoch"] + 1
        if rank == 0:
            print(f"resuming at epoch {first_epoch} from {args.checkpoint}", flush=True)

    for epoch in range(first_epoch, args.epochs):
        sampler.set_epoch(epoch)
        loss = train_epoch(model, loader, optimizer, lambda: hurt_if_asked(args, rank, epoch))
        if rank == 0:
            right = accuracy(network, test_set)
            print(f"epoch {epoch}  loss {loss:.3f}  test accuracy {right:.1%}", flush=True)
            if args.checkpoint:
                save_checkpoint(
                    args.checkpoint,
                    epoch=epoch,
                    network=network.state_dict(),
                    optimizer=optimizer.state_dict(),
                )
    # All leave together: whoever left early would look like a failure to the others.
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
