# SPDX-License-Identifier: Apache-2.0
"""Real PyTorch with gloo: Debian's, and the newest in the chroot."""

import corpus

SYSTEM = "/usr/bin/env TMPDIR={T}/home /usr/bin/python3 {HERE}/torch_worker.py "
NEWEST = "{TOP}/scripts/in-chroot /usr/bin/python3 {HERE}/torch_worker.py "


def adder(name, title, interpreter, needs):
    put = corpus.group(name)

    def add(what, how, kind, line="", **rest):
        env = {"GLOO_SOCKET_IFNAME": "lo", "LIMIT": "4", **rest.pop("env", {})}
        settings = {"ranks": 3, "rank": 2, "seconds": 90.0, "env": env, "needs": needs, **rest}
        put(f"{title}: {what}", interpreter + how, kind, line, language="command", **settings)

    return add


system = adder("pytorch", "1.13", SYSTEM, "torch")
newest = adder("newest pytorch", "2.14", NEWEST, "chroot, root")

for add in (system, newest):
    peers = {"victims": (0, 1)}
    add("an exception between two operations", "exception", "python_exception",
        "ValueError: loss is NaN at step 17", **peers)
    add("a rank is killed", "killed", "killed", None, **peers)
    add("the culprit ends after its victims", "slow_culprit", "python_exception",
        "RuntimeError: checkpoint is corrupt: /data/step_900.pt", **peers)
    add("a peer is missing in all_reduce", "missing_peer", "hung", None, victims=(0, 1))
    add("sizes that do not match", "mismatched_sizes", "collective_mismatch",
        "op.preamble.length <= op.nbytes", rank=0, any_of=(0, 1, 2), victims=(0, 1, 2))
    add("a process of the data loader is killed", "data_killed", "data_worker_died",
        "DataLoader worker (pid", env={"LIMIT": "30"}, **peers)
    add("the data set raises", "data_raises", "python_exception",
        "KeyError: 'sample 5 has no label'", env={"LIMIT": "30"}, **peers)

system("a monitored barrier", "monitored_barrier", "hung", None, victims=(0, 1))
system("a key that nobody sets", "store_key", "hung", None, victims=(0, 1))
newest("a key that nobody sets", "store_key", "hung", None, victims=(0, 1))
newest("a rank that never comes", "no_rendezvous", "hung", None, victims=(0, 1))
system("a key that nobody could set", "own_key", "store_timeout", "Socket Timeout",
       ranks=1, rank=0, waits=True)
newest("a key that nobody could set", "own_key", "store_timeout",
       "wait timeout after 2000ms, keys: /default_pg/0//checkpoint_ready",
       ranks=1, rank=0, waits=True)
system("shapes that do not match", "mismatched_shapes", "collective_mismatch",
       "appears not to match sizes of the same param in process 0", victims=(0, 1))
system("no memory", "memory", "memory_error", "DefaultCPUAllocator: can't allocate memory",
       victims=(0, 1))
newest("no CUDA in this build", "cuda", "python_exception",
       "AssertionError: Torch not compiled with CUDA enabled", victims=(0, 1))
