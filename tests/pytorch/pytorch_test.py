# SPDX-License-Identifier: Apache-2.0
"""Real PyTorch under muster: the workers use the interpreter that runs this file."""

import importlib.util
import json
import os
import unittest

import harness
from harness import MusterTest

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
TRAIN = os.path.join(TOP, "examples", "pytorch_ddp", "train.py")


class PyTorch(MusterTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if importlib.util.find_spec("torch") is None:
            raise unittest.SkipTest("this Python has no torch")

    def torch(self, *arguments, code=0, seconds=240):
        """Runs muster on a worker of this folder; keeps gloo off the machine's other interfaces."""
        words = [
            os.path.join(HERE, word) if word.endswith("_worker.py") else word for word in arguments
        ]
        words = ["--summary", self.path("summary.json"), *words]
        env = {"GLOO_SOCKET_IFNAME": "lo", "TORCHINDUCTOR_CACHE_DIR": self.path("home")}
        run = self.muster(*words, seconds=seconds, env=env)
        self.assert_code(run, code)
        return run

    def summary_of_run(self):
        return json.loads(harness.read(self.path("summary.json")))

    def test_the_store_satisfies_the_client(self):
        run = self.torch("store_worker.py")
        self.assertIn("OK", run.err)

    def test_four_ranks_train_alike(self):
        run = self.torch("--nproc-per-node", "4", "gloo_worker.py", "ddp")
        self.assertEqual(run.out.count("done"), 4)

    def test_sixteen_ranks_meet(self):
        run = self.torch("--nproc-per-node", "16", "gloo_worker.py", "sum")
        self.assertEqual(run.out.count("done"), 16)

    def test_every_restarted_group_meets_again(self):
        words = ("--nproc-per-node", "2", "--max-restarts", "10", *harness.RESTART_FREELY)
        run = self.torch(*words, "gloo_worker.py", "restart")
        self.assertEqual(run.out.count("done in attempt 10"), 2)
        self.assertEqual(self.summary_of_run()["restarts"], {"used": 10, "max": 10})

    def test_ranks_may_leave_at_uneven_times(self):
        run = self.torch("--nproc-per-node", "4", "gloo_worker.py", "uneven")
        self.assertEqual(run.out.count("done"), 4)

    def test_an_error_file_names_the_cause(self):
        run = self.torch("--nproc-per-node", "2", "record_worker.py", code=1)
        cause = self.summary_of_run()["root_cause"]
        self.assertEqual(cause["rank"], 1)
        self.assertIn("ValueError: deliberate, on rank 1", cause["message"])
        self.assertIn("ValueError: deliberate, on rank 1", run.err)
        self.assertEqual([victim["rank"] for victim in self.summary_of_run()["victims"]], [0])

    def test_training_resumes_from_its_checkpoint(self):
        words = ("--nproc-per-node", "4", "--max-restarts", "1", TRAIN, "--epochs", "5")
        checkpoint = ("--checkpoint", self.path("digits.pt"))
        run = self.torch(*words, *checkpoint, "--die-at-epoch", "2", "--die-rank", "3")
        self.assertIn("resuming at epoch 2", run.out)
        self.assertEqual(
            run.out.count("epoch 1 "), 1, "epochs before the checkpoint are not repeated"
        )
        accuracy = float(run.out.rpartition("test accuracy ")[2].rstrip().rstrip("%"))
        self.assertGreater(accuracy, 90)


if __name__ == "__main__":
    harness.main()
