# SPDX-License-Identifier: Apache-2.0
"""From the word "go" to the last of N ranks that has its group on Gloo: muster::comm's join and
communicator against init_process_group("gloo", "tcp://...") of PyTorch. Both connect each rank with
each; all processes are there already, PyTorch imported. PyTorch takes part up to 16 ranks."""

import os
import statistics
import subprocess
import sys

import peers

BENCH = os.path.join(peers.BUILD, "bench", "comm", "joining_bench")
IN_CHROOT = os.path.join(peers.TOP, "scripts", "in-chroot")
TORCH_RANKS = 16

# Forks its ranks when torch is imported, and lets them go together.
TORCH = """
import mmap, os, socket, struct, sys, time
from datetime import timedelta
import torch
import torch.distributed as dist

ranks = int(sys.argv[1])
stamps = mmap.mmap(-1, 8 * ranks)
with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
word, end = os.pipe()
for rank in range(ranks):
    if os.fork() == 0:
        os.close(end)
        os.read(word, 1)
        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank,
                                world_size=ranks, timeout=timedelta(seconds=60))
        struct.pack_into("q", stamps, 8 * rank, time.monotonic_ns())
        dist.barrier()
        os._exit(0)
time.sleep(0.2)
begin = time.monotonic_ns()
os.close(end)
good = all(os.wait()[1] == 0 for _ in range(ranks))
last = max(struct.unpack(f"{ranks}q", stamps[:]))
print((last - begin) / 1e6 if good else "failed")
"""


def native(ranks, method):
    out = subprocess.run([BENCH, str(ranks), method], capture_output=True, text=True, check=True)
    return [float(word) for word in out.stdout.split()]


def torch(prefix, ranks):
    env = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1", "USE_LIBUV": "0"}
    command = [*prefix, peers.SYSTEM_PYTHON, "-c", TORCH, str(ranks)]
    out = subprocess.run(command, capture_output=True, text=True, env=env, check=True)
    return float(out.stdout)


def spread(samples):
    return f"{statistics.median(samples):8.1f} ({min(samples):.1f} to {max(samples):.1f})"


def main():
    args = peers.arguments(__doc__, 7)
    torches = {"torch 2.14": [IN_CHROOT], "torch 1.13": []}
    torches = {name: prefix for name, prefix in torches.items() if name not in args.without}
    print("ranks  what                                   ms: median (spread)")
    for ranks in (2, 8, 16, 64):
        kinds = {"tcp joined": [], "tcp ready": [], "file joined": [], "file ready": []}
        peer_kinds = {name: [] for name in torches} if ranks <= TORCH_RANKS else {}
        for _ in range(args.rounds):
            for method in ("tcp", "file"):
                joined, ready = native(ranks, method)
                kinds[f"{method} joined"].append(joined)
                kinds[f"{method} ready"].append(ready)
            for name, samples in peer_kinds.items():
                samples.append(torch(torches[name], ranks))
        for name, samples in kinds.items():
            print(f"{ranks:5}  muster, {name:30} {spread(samples)}", flush=True)
        own = statistics.median(kinds["tcp ready"])
        for name, samples in peer_kinds.items():
            ratio = own / statistics.median(samples)
            print(f"{ranks:5}  {name + ', init_process_group':38} {spread(samples)}"
                  f"   muster takes {ratio:.2f} of it", flush=True)


if __name__ == "__main__":
    sys.exit(main())
