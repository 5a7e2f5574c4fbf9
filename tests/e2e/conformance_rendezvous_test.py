# SPDX-License-Identifier: Apache-2.0
"""Rows 64 to 67 and 70: rendezvous values, time-outs, NUMA binding, events."""

import json
import os
import socket
import time

import harness
from conformance import ConformanceTest, row
from nodes import free_port


class Rendezvous(ConformanceTest):
    @row(
        64,
        "same run id with a file store after a finished job -> closed, exit 1. join_timeout=2 alone "
        "of two -> exit 1 after 2 s. join_timeout=0, read_timeout=0, is_host=maybe, store_type=zip "
        "-> exit 1",
        "different: bad values exit 2; a finished job leaves nothing that bars the next one",
    )
    def test_bad_settings(self):
        for setting in ("join_timeout=0", "read_timeout=0", "is_host=maybe", "store_type=zip"):
            with self.subTest(setting=setting):
                words = ("--rdzv-backend", "c10d", "--rdzv-conf", setting)
                name = setting.split("=", maxsplit=1)[0]
                self.refused(*words, "--no-python", self.words(), says=name)
        before = time.monotonic()
        words = ("--nnodes", 2, "--rdzv-backend", "c10d", "--rdzv-conf", "join_timeout=2")
        endpoint = ("--rdzv-endpoint", f"127.0.0.1:{free_port()}", "--rdzv-id", "job")
        run = self.muster(*words, *endpoint, "--no-python", self.words())
        self.assert_code(run, 1)
        self.assertGreater(time.monotonic() - before, 1.9)
        for name in ("first", "second"):
            words = ("--nnodes", 1, "--rdzv-backend", "c10d", "--rdzv-conf", "store_type=file")
            endpoint = ("--rdzv-endpoint", self.path("meeting"), "--rdzv-id", "job")
            self.assert_code(self.muster(*words, *endpoint, "--no-python", self.words()), 0)

    @row(
        65,
        "static, --nnodes 1:2 -> waits for two nodes. Node 0 alone with timeout=3 -> exit 1; node 1 "
        "alone with timeout=2 -> exit 1; a port that is taken -> exit 1; --rdzv-conf rank=7 is "
        "overridden",
    )
    def test_static(self):
        for rank, seconds in ((0, 3), (1, 2)):
            before = time.monotonic()
            words = ("--nnodes", "1:2", "--node-rank", rank, "--rdzv-conf", f"timeout={seconds}")
            master = ("--master-addr", "127.0.0.1", "--master-port", free_port())
            run = self.muster(*words, *master, "--no-python", self.words())
            self.assert_code(run, 1)
            self.assertGreater(time.monotonic() - before, seconds - 0.1)
            self.assertEqual(self.started(), [])
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

    @row(
        66,
        "--rdzv-backend c10d --node-rank 1 -> warning, value ignored",
        "different: on one node the same; of several it counts if every node has one",
    )
    def test_node_rank_with_c10d(self):
        words = ("--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "--node-rank", "1")
        run = self.muster(*words, "--no-python", self.dump())
        self.assert_code(run, 0)
        self.assertRegex(run.err, "node.rank")
        self.assertEqual(self.env_of()["GROUP_RANK"], "0")
        words = ("--nnodes", 2, "--rdzv-backend", "c10d", "--rdzv-id", "job")
        endpoint = ("--rdzv-endpoint", f"127.0.0.1:{free_port()}")
        runs = [
            self.start(*words, *endpoint, "--node-rank", rank, "--no-python", self.dump())
            for rank in (1, 0)
        ]
        for run in runs:
            self.assert_code(run.wait(), 0)
        self.assertEqual([self.env_of(rank)["GROUP_RANK"] for rank in (0, 1)], ["0", "1"])

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
