# SPDX-License-Identifier: Apache-2.0
"""muster's client for workers against the store server of the PyTorch that runs this file."""

import os
import subprocess
import unittest
from datetime import timedelta

import harness

CLIENT = os.path.join(os.environ["MUSTER_BUILD"], "tests", "helpers", "muster_store_client")


class Client(unittest.TestCase):
    def test_a_native_client_and_a_pytorch_one_understand_each_other(self):
        try:
            import torch.distributed as dist
        except ImportError:
            self.skipTest("this Python has no torch")
        store = dist.TCPStore(
            "127.0.0.1", 0, None, True, timedelta(seconds=60), wait_for_workers=False, use_libuv=False
        )
        client = subprocess.Popen([CLIENT, str(store.port)], stdout=subprocess.PIPE, text=True)
        self.assertEqual(store.get("native"), b"value")
        self.assertEqual(store.get("prefix/native"), b"value")
        store.set("python", "here")
        out, _ = client.communicate(timeout=60)
        self.assertEqual((client.returncode, out), (0, "done\n"))


if __name__ == "__main__":
    harness.main()
