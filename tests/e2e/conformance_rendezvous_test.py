# SPDX-License-Identifier: Apache-2.0
"""Rows 58 to 70, as far as one node shows them: rendezvous values, NUMA binding, events."""

import json
import os
import socket
import time

import harness
from conformance import ConformanceTest, row


class Rendezvous(ConformanceTest):
    @row(
        64,
        "join_timeout=0, read_timeout=0, is_host=maybe, store_type=zip -> exit 1 (on one node)",
        "different: exit 2",
    )
    def test_bad_settings(self):
        for setting in ("join_timeout=0", "read_timeout=0", "is_host=maybe", "store_type=zip"):
            with self.subTest(setting=setting):
                words = ("--rdzv-backend", "c10d", "--rdzv-conf", setting)
                name = setting.split("=", maxsplit=1)[0]
                self.refused(*words, "--no-python", self.words(), says=name)

    @row(
        65,
        "static: a port that is taken -> exit 1; --rdzv-conf rank=7 is overridden (the part of one "
        "node)",
    )
    def test_static(self):
        words = ("--rdzv-conf", "rank=7", "--master-port", "29614", "--no-python", self.dump())
        self.assert_code(self.muster(*words), 0)
        self.assertEqual(self.env_of()["GROUP_RANK"], "0")
        os.remove(self.path("env.0"))
        with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as taken:
            port = str(taken.getsockname()[1])
            run = self.muster("--master-port", port, "--no-python", self.dump())
            self.assert_code(run, 1)
            self.assertIn(port, run.err)
            self.assertIn("in use", run.err.lower())
            self.assertEqual(self.started(), [])

    @row(66, "--rdzv-backend c10d --node-rank 1 -> warning, value ignored")
    def test_node_rank_with_c10d(self):
        words = ("--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "--node-rank", "1")
        run = self.muster(*words, "--no-python", self.dump())
        self.assert_code(run, 0)
        self.assertRegex(run.err, "node.rank")
        self.assertEqual(self.env_of()["GROUP_RANK"], "0")

    @row(
        67,
        "--numa-binding node without an accelerator -> exit 1, 'No accelerator available'; foo: 2",
        "different: exit 2, before any worker starts",
    )
    def test_numa_binding(self):
        if not os.path.exists("/dev/nvidiactl"):
            run = self.refused("--numa-binding", "node", "--no-python", self.words())
            self.assertIn("accelerator", run.err.lower())
        self.refused("--numa-binding", "foo", "--no-python", self.words(), says="foo")

    @row(
        70,
        "--event-log-handler console -> JSON lines RENDEZVOUS, ..., SUCCEEDED (AGENT), also with a "
        "failing worker",
        "different: timestamps are real, and the agent of a failed job is FAILED",
    )
    def test_event_log_handler(self):
        states = self.event_states(0, self.words())
        started = ["AGENT RENDEZVOUS", "AGENT ASSIGN_WORKER_RANKS", "WORKER START"]
        self.assertEqual(states, [*started, "WORKER SUCCEEDED", "AGENT SUCCEEDED"])
        states = self.event_states(3, self.script("exit 3"))
        self.assertEqual(states, [*started, "WORKER FAILED", "AGENT FAILED"])

    def event_states(self, code, worker):
        before = int(time.time())
        run = self.muster("--event-log-handler", "console", "--no-python", worker)
        self.assert_code(run, code)
        events = [json.loads(line) for line in run.err.splitlines() if line.startswith("{")]
        for event in events:
            self.assertTrue(before <= event["timestamp"] <= time.time(), event)
        return [f"{event['source']} {event['metadata']['state']}" for event in events]


if __name__ == "__main__":
    harness.main()
