# SPDX-License-Identifier: Apache-2.0
"""The worker library and PyTorch at one store: PyTorch's server and torchrun's for our ranks, ours
for PyTorch's. With MUSTER_TORCH=chroot it is the newest PyTorch, else that of this interpreter."""

import importlib.util
import os
import socket
import subprocess
import sys
import unittest

import harness
from harness import wait_until
from talk import Talk

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
MEMBER = os.path.join(os.environ["MUSTER_BUILD"], "tests", "nccl", "join", "join_member")
CHROOT = os.environ.get("MUSTER_TORCH") == "chroot"
PATIENCE = 120  # seconds; imports of torch on two busy cores among them

PYTHON = [sys.executable]
TORCHRUN = [sys.executable, os.path.join(TOP, "bench", "torchrun_1_13.py")]
if CHROOT:
    PYTHON = [os.path.join(TOP, "scripts", "in-chroot"), "/usr/bin/python3"]
    TORCHRUN = [*PYTHON, "-m", "torch.distributed.run"]

# Opens a server and then does what its input says.
SERVER = """
import sys
from datetime import timedelta
import torch.distributed as dist
new = "use_libuv" in (dist.TCPStore.__init__.__doc__ or "use_libuv")
options = {"use_libuv": False} if new else {}
port, workers = int(sys.argv[1]), int(sys.argv[2])
store = dist.TCPStore("127.0.0.1", port, workers or None, True, timedelta(seconds=60),
                      wait_for_workers=workers > 0, **options)
print("serving", flush=True)
for line in sys.stdin:
    print(eval(line), flush=True)
"""

# A client, and a group of two whose store it is.
CLIENT = """
import sys
from datetime import timedelta
import torch
import torch.distributed as dist
port, rank = int(sys.argv[1]), int(sys.argv[2])
store = dist.TCPStore("127.0.0.1", port, None, False, timedelta(seconds=60))
store.set(f"k{rank}", b"x" * 100_000)
assert store.get(f"k{1 - rank}") == b"x" * 100_000
assert store.compare_set(f"c{rank}", "", "first") == b"first"
assert store.compare_set(f"c{rank}", "no", "second") == b"first"
store.add("n", 1)
store.wait(["k0", "k1"], timedelta(seconds=30))
try:
    store.wait(["never"], timedelta(milliseconds=50))
    sys.exit("waited for nothing")
except RuntimeError:
    pass
assert store.delete_key(f"c{rank}")
dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
tensor = torch.tensor([rank + 1.0])
dist.all_reduce(tensor)
print("sum", tensor.item(), flush=True)
dist.barrier()
"""

# A worker of torchrun: leaves its environment to the rank that stands in for it.
WORKER = """
import os, sys, time
folder = sys.argv[1]
kinds = ("MASTER_", "RANK", "WORLD_SIZE", "LOCAL_", "TORCHELASTIC_")
names = [name for name in os.environ if name.startswith(kinds)]
path = os.path.join(folder, "env." + os.environ["RANK"])
with open(path + ".part", "w") as file:
    file.write("".join(f"{n}={os.environ[n]}\\n" for n in names))
os.rename(path + ".part", path)
while not os.path.exists(os.path.join(folder, "done")):
    time.sleep(0.05)
"""


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class Joining(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if CHROOT and not os.path.isdir(os.path.join(harness.CACHE, "chroot-forky")):
            raise unittest.SkipTest("no PyTorch chroot; scripts/pytorch-chroot makes it")
        if not CHROOT and importlib.util.find_spec("torch") is None:
            raise unittest.SkipTest("this Python has no torch")

    def members(self, count, **variables):
        """Ranks with this environment, which have not answered yet."""
        base = {k: v for k, v in os.environ.items() if not k.startswith("TORCHELASTIC_")}
        base.update(WORLD_SIZE=str(count), **variables)
        return [
            Talk(self, [MEMBER, "env://", "60000"], dict(base, RANK=str(rank)))
            for rank in range(count)
        ]

    def use(self, members):
        """They have joined, and find each other in the store and over Gloo."""
        for rank, member in enumerate(members):
            self.assertEqual(member.next(), f"ok {rank}/{len(members)}")
        for member in members:
            member.say("comm gloo 60000")
        total = sum(range(len(members)))
        for member in members:
            self.assertEqual(member.next(), f"ok {total}")
        for member in members:
            member.say("barrier here 60000")
        for member in members:
            self.assertEqual(member.next(), "ok")
        self.assertIn("error timeout", members[0].ask("get never 50"))
        self.assertEqual(members[-1].ask("add n 2"), "ok 2")

    def serve(self, port, workers=0):
        return Talk(self, [*PYTHON, "-c", SERVER, str(port), str(workers)])

    def test_our_ranks_meet_at_a_server_of_pytorch(self):
        port = free_port()
        members = self.members(
            3, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), TORCHELASTIC_USE_AGENT_STORE="True"
        )
        server = self.serve(port)  # after those who look for it
        self.assertEqual(server.next(), "serving")
        self.use(members)
        self.assertEqual(members[1].ask("set k value"), "ok")
        self.assertEqual(members[2].ask("get k 5000"), "ok value")
        self.assertEqual(server.ask("store.get('muster/comm/0/user/k')"), "b'value'")

    def test_a_server_that_waits_for_its_workers_counts_ours(self):
        port = free_port()
        server = self.serve(port, workers=3)
        members = self.members(
            2, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), TORCHELASTIC_USE_AGENT_STORE="1"
        )
        self.assertEqual(server.next(), "serving")
        self.use(members)

    def test_pytorch_is_at_home_in_a_store_that_our_rank_0_hosts(self):
        port = free_port()
        host = Talk(self, [MEMBER, f"tcp://127.0.0.1:{port}", "60000", "0", "1"])
        self.assertEqual(host.next(), "ok 0/1")
        env = dict(os.environ, GLOO_SOCKET_IFNAME="lo")
        clients = [
            Talk(self, [*PYTHON, "-c", CLIENT, str(port), str(rank)], env) for rank in range(2)
        ]
        for client in clients:
            self.assertEqual(client.next(), "sum 3.0")
        for client in clients:
            self.assertEqual(client.process.wait(PATIENCE), 0)
        self.assertEqual(host.ask("leave 10000"), "ok")

    def test_our_ranks_find_their_way_in_the_environment_of_torchrun(self):
        folder = self.enterContext(harness.tempfile.TemporaryDirectory(prefix="muster-test-"))
        worker = os.path.join(folder, "worker.py")
        with open(worker, "w", encoding="utf-8") as file:
            file.write(WORKER)
        env = dict(os.environ, USE_LIBUV="0", OMP_NUM_THREADS="1")
        command = [*TORCHRUN, "--nproc_per_node", "2", "--master_port", str(free_port())]
        torchrun = subprocess.Popen([*command, worker, folder], env=env)
        try:
            paths = [os.path.join(folder, f"env.{rank}") for rank in range(2)]
            wait_until(lambda: all(map(os.path.exists, paths)), "the workers run", PATIENCE)
            members = []
            for path in paths:
                with open(path, encoding="utf-8") as file:
                    variables = dict(line.rstrip("\n").split("=", 1) for line in file)
                self.assertEqual(variables["TORCHELASTIC_USE_AGENT_STORE"], "True")
                env = dict(os.environ, **variables)
                members.append(Talk(self, [MEMBER, "env://", "60000"], env))
            self.use(members)
        finally:
            with open(os.path.join(folder, "done"), "w", encoding="utf-8"):
                pass
            self.assertEqual(torchrun.wait(PATIENCE), 0)


if __name__ == "__main__":
    harness.main()
