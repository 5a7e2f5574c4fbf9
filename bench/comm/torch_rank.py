# SPDX-License-Identifier: Apache-2.0
"""One rank of torch.distributed's gloo with the operations and sizes of comm_bench.cc:
torch_rank.py RANK RANKS MEETING_FILE SECONDS_PER_CELL. Prints the same lines."""
import statistics
import sys
import time

import torch
import torch.distributed as dist

rank, ranks, meeting, seconds = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], float(sys.argv[4])
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=ranks)


def one_call(call):
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1e6


def measure(name, size, call):
    warm = statistics.median(one_call(call) for _ in range(5))
    calls = torch.tensor([min(max(int(seconds * 1e6 / (2 * max(warm, 1.0))), 15), 100_000)])
    dist.broadcast(calls, 0)
    times = [one_call(call) for _ in range(int(calls))]
    if rank == 0:
        print(name, size, f"{statistics.median(times):.2f}", flush=True)


size = 4
while size <= 64 << 20:
    numbers = torch.zeros(size // 4)
    measure("all_reduce", size, lambda: dist.all_reduce(numbers))
    measure("broadcast", size, lambda: dist.broadcast(numbers, 0))
    size *= 16
measure("barrier", 0, dist.barrier)
dist.destroy_process_group()
