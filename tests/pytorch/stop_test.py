# SPDX-License-Identifier: Apache-2.0
"""Ranks on two nodes save at the same step when one node gets a stop signal (docs/slurm.md)."""

import importlib.util
import os
import re
import signal
import socket
import unittest

import harness
from harness import MusterTest

WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stop_worker.py")


class StopTogether(MusterTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if importlib.util.find_spec("torch") is None:
            raise unittest.SkipTest("this Python has no torch")
        import torch.distributed

        if not hasattr(torch.distributed.TCPStore, "check"):
            raise unittest.SkipTest("this PyTorch's store cannot be asked whether it has a key")

    def test_two_nodes_save_at_one_step(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            endpoint = f"127.0.0.1:{taken.getsockname()[1]}"
        words = ["--nnodes", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", endpoint]
        words += ["--nproc-per-node", "2", "--console", "lines", WORKER]
        env = {"GLOO_SOCKET_IFNAME": "lo"}
        nodes = [self.start(*words, env=env) for _ in range(2)]
        for node in nodes:
            harness.wait_until(lambda one=node: one.out.count("trains") == 2, "all train", 120)
        nodes[1].signal(signal.SIGTERM)
        for node in nodes:
            node.wait(120)
            self.assert_code(node, 143)
        steps = re.findall(r"saved at step (\d+)", nodes[0].out + nodes[1].out)
        self.assertEqual(len(steps), 4, nodes[0].out + nodes[1].out)
        self.assertEqual(len(set(steps)), 1, steps)


if __name__ == "__main__":
    harness.main()
