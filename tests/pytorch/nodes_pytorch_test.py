# SPDX-License-Identifier: Apache-2.0
"""Real PyTorch on two hosts (network namespaces): a node is killed and replaced, and training goes
on from its checkpoint as if nothing had been. With MUSTER_TORCH=chroot the workers are the newest
PyTorch, else Debian's own."""

import importlib.util
import os
import re
import sys
import unittest

import harness
from harness import wait_until
from netns import NetnsTest

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
TRAIN = os.path.join(TOP, "examples", "pytorch_ddp", "train.py")
CHROOT = os.environ.get("MUSTER_TORCH") == "chroot"
EPOCHS = 30
PATIENCE = 120  # seconds; four imports of torch on two busy cores among them


class TwoHosts(NetnsTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if CHROOT and not os.path.isdir(os.path.join(harness.CACHE, "chroot-forky")):
            raise unittest.SkipTest("no PyTorch chroot; scripts/pytorch-chroot makes it")
        if not CHROOT and importlib.util.find_spec("torch") is None:
            raise unittest.SkipTest("this Python has no torch")

    def training(self, *words):
        interpreter = [sys.executable]
        if CHROOT:
            interpreter = [os.path.join(TOP, "scripts", "in-chroot"), "/usr/bin/python3"]
        return [*interpreter, TRAIN, "--epochs", str(EPOCHS), *words]

    def node(self, name, nnodes, **rest):
        return self.agent(
            name,
            nnodes=nnodes,
            endpoint=f"{self.hosts['a'].address}:{self.port}",
            worker=self.training("--checkpoint", self.path("digits.pt")),
            env={"GLOO_SOCKET_IFNAME": "e0"},
            **rest,
        )

    def losses(self, node):
        """{epoch: loss} as rank 0 printed it. An epoch is trained again only if its checkpoint was
        not yet written when the attempt ended, so one for each attempt at most."""
        printed = re.findall(r"epoch (\d+)  loss ([\d.]+)", node.run.out)
        found = {int(epoch): float(loss) for epoch, loss in printed}
        self.assertLess(len(printed) - len(found), len(node.events("attempt_started")))
        return found

    def wait_for_epoch(self, node, epoch):
        wait_until(
            lambda: f"epoch {epoch} " in node.run.out or node.run.process.poll() is not None,
            f"epoch {epoch} is done",
            PATIENCE,
        )
        self.assertIsNone(node.run.process.poll(), node.story())

    def undisturbed(self):
        """What the losses are if nothing happens: two workers on one node."""
        words = ("--nproc-per-node", 2, "--no-python", *self.training())
        run = self.muster(*words, seconds=PATIENCE, env={"GLOO_SOCKET_IFNAME": "lo"})
        self.assert_code(run, 0)
        pairs = re.findall(r"epoch (\d+)  loss ([\d.]+)", run.out)
        return {int(epoch): float(loss) for epoch, loss in pairs}

    def assert_learnt(self, *nodes):
        out = "".join(node.run.out for node in nodes)
        accuracies = re.findall(r"test accuracy ([\d.]+)%", out)
        self.assertGreater(float(accuracies[-1]), 90)

    def test_a_replaced_node_changes_nothing_but_the_time(self):
        a, b = self.node("a", 2), self.node("b", 2)
        self.wait_for_epoch(a, 3)
        b.kill()
        a.run.wait_for_message("1 of 2 nodes")
        c = self.node("c", 2)
        self.wait_for_end([a, c], 0, PATIENCE)
        self.assertRegex(a.run.out, r"resuming at epoch \d+")
        self.assertEqual(a.summary["restarts"]["used"], 0, a.story())
        losses = self.losses(a)
        expected = self.undisturbed()
        self.assertEqual(sorted(losses), list(range(EPOCHS)))
        for epoch, loss in losses.items():
            self.assertAlmostEqual(loss, expected[epoch], delta=0.01, msg=f"epoch {epoch}")
        self.assert_learnt(a)

    def test_an_elastic_job_trains_on_with_what_it_has(self):
        a, b = self.node("a", "1:2"), self.node("b", "1:2")
        self.wait_for_epoch(a, 2)
        b.kill()
        alone = a.wait_for_event("attempt_started", node_count=1)["attempt"]
        self.wait_for_epoch(a, 6)
        c = self.node("c", "1:2")
        self.wait_for_end([a, c], 0, PATIENCE)
        worlds = [event["node_count"] for event in a.events("attempt_started")]
        self.assertEqual(worlds[alone - 1 :], [2, 1, 2])
        losses = self.losses(a)
        self.assertEqual(sorted(losses), list(range(EPOCHS)))
        for epoch in range(1, EPOCHS):
            self.assertLess(losses[epoch], losses[epoch - 1] * 1.2 + 0.05, f"epoch {epoch}")
        self.assert_learnt(a)


if __name__ == "__main__":
    harness.main()
