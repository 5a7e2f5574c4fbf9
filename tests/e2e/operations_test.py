# SPDX-License-Identifier: Apache-2.0
"""Workers that tell of their operations in their pages: who keeps whom waiting is named, while the
job runs, when it ends, and in its folder afterwards."""

import json
import os
import signal
import subprocess
import time

import harness
from api import Api
from harness import MUSTER, MusterTest, alive, read, wait_until
from nodes import NodesTest
from schema import violations

WORKER = os.path.join(os.environ.get("MUSTER_BUILD", ""), "tests", "helpers", "page_worker")
GRADIENTS = 1050000  # 4.2 MB of float32


class OperationsTest(MusterTest):
    def job(self, *steps, workers=4, options=(), worker=(WORKER,), **rest):
        return self.start(
            "--nproc-per-node", workers, "--log-dir", self.path("logs"), *options,
            "--no-python", *worker, "comm=world=" + ",".join(map(str, range(workers))), *steps,
            **rest,
        )  # fmt: skip

    def last_summary(self):
        return self.summary(self.run_folder(self.path("logs")))

    def events(self, kind):
        path = os.path.join(self.run_folder(self.path("logs")), "events.jsonl")
        found = [json.loads(line) for line in read(path).splitlines()]
        return [event for event in found if event["event"] == kind]

    def check_status(self, api):
        self.assertEqual(violations(api.json("/status"), "schemas/status.schema.json"), [])
        for name in ("samples", "attempts"):
            rows = api.json("/api/v1/" + name)
            self.assertEqual(violations(rows, f"schemas/{name}.schema.json"), [], name)


class DeathTest(OperationsTest):
    def test_what_a_killed_rank_was_in_is_told(self):
        run = self.job(f"in=all_reduce={GRADIENTS}", "say=in", "2:kill=9", "wait")
        run.wait()
        self.assertEqual(run.code, 137, run.err)
        line = "rank 2 died in all_reduce #1 (4.2 MB, float32), "
        self.assertIn(line, run.err)
        summary = self.last_summary()
        self.assertEqual(violations(summary, "summary.schema.json"), [])
        found = summary["collectives"][0]
        self.assertEqual(found["kind"], "died")
        self.assertEqual(found["suspects"], "2")
        self.assertEqual(summary["root_cause"]["rank"], 2)
        self.assertEqual(self.events("collectives_found")[0]["found"][0]["kind"], "died")

    def test_what_the_only_rank_was_in_is_told(self):
        # Nobody is left to be stopped.
        run = self.job(f"in=all_reduce={GRADIENTS}", "say=in", "kill=9", workers=1)
        run.wait()
        self.assertEqual(run.code, 137, run.err)
        self.assertIn("rank 0 died in all_reduce #1 (4.2 MB, float32)", run.err)
        self.assertEqual(self.last_summary()["collectives"][0]["kind"], "died")

    def test_who_waited_for_a_killed_rank_is_told(self):
        os.mkfifo(self.path("gate"))
        run = self.job(
            f"do=all_reduce={GRADIENTS}", f"!3:in=all_reduce={GRADIENTS}", "say=ready",
            f"3:gate={self.path('gate')}", "3:kill=9", "wait",
        )  # fmt: skip
        wait_until(lambda: run.out.count("ready") == 4, "all are ready")
        with open(self.path("gate"), "wb"):
            pass
        run.wait()
        self.assertIn(
            "rank 3 died before it entered all_reduce #2 (4.2 MB, float32); ranks 0-2 wait since",
            run.err,
        )
        view = self.start("view", "--json", self.run_folder(self.path("logs")))
        view.wait_for_output("\n")
        api = Api(view, json.loads(view.out)["url"])
        self.check_status(api)
        status = api.json("/status")
        self.assertEqual(status["collectives"][0]["suspects"], "3")
        self.assertEqual(status["failure"]["collectives"], status["collectives"])
        attempt = api.json("/api/v1/attempts")["attempts"][0]
        self.assertEqual(attempt["collectives"][0]["waiting"], "0-2")
        view.signal(signal.SIGTERM)
        view.wait()

    def test_a_victim_of_a_broken_connection_is_not_the_root_cause(self):
        # Rank 0 dies first, of what rank 1 did, which ends a moment later.
        os.mkfifo(self.path("gate"))
        run = self.job(
            "0:fail=all_reduce=10", "1:in=all_reduce=10", "say=ready",
            f"gate={self.path('gate')}", "0:error=connection to rank 1 broke=peer_lost",
            "0:exit=1", "1:exit=3", workers=2,
        )  # fmt: skip
        wait_until(lambda: run.out.count("ready") == 2, "both are ready")
        supervisor = harness.children(run.pid)[0]
        # Both end while muster stands still, so that neither is stopped for the other.
        workers = harness.children(supervisor)
        os.kill(supervisor, signal.SIGSTOP)
        with open(self.path("gate"), "wb"):
            wait_until(lambda: not any(map(alive, workers)), "both have ended")
        os.kill(supervisor, signal.SIGCONT)
        run.wait()
        summary = self.last_summary()
        # Whatever the order of their deaths.
        self.assertEqual(summary["root_cause"]["rank"], 1, summary)
        self.assertEqual([cause["rank"] for cause in summary["other_causes"]], [0])

    def test_a_deadline_that_passed_names_the_rank_that_never_came(self):
        os.mkfifo(self.path("gate"))
        run = self.job(
            "do=barrier=0", "!2:in=all_reduce=100", "say=ready", f"0:gate={self.path('gate')}",
            "0:broken", "0:error=all_reduce: not done in 1.2 s=timeout", "0:exit=1", "wait",
            workers=3,
        )  # fmt: skip
        wait_until(lambda: run.out.count("ready") == 3, "all are ready")
        time.sleep(1.2)  # the deadline
        with open(self.path("gate"), "wb"):
            pass
        run.wait()
        summary = self.last_summary()
        cause = summary["root_cause"]
        self.assertEqual((cause["rank"], cause["kind"]), (2, "hung"), summary)
        self.assertEqual([other["rank"] for other in summary["other_causes"]], [0])
        self.assertEqual(summary["collectives"][0]["suspects"], "2", summary["collectives"])
        self.assertIn("rank 2 never entered all_reduce #2 (400 B, float32)", run.err)

    def test_a_vandalised_page_costs_nothing(self):
        run = self.job("in=all_reduce=10", "0:vandal", "say=done", "wait", workers=2)
        wait_until(lambda: run.out.count("done") == 2, "the page is spoilt")
        api = Api(run)
        wait_until(lambda: len(api.json("/api/v1/samples")["samples"]) == 2, "both are measured")
        self.check_status(api)
        run.signal(signal.SIGTERM)
        run.wait()
        self.assertEqual(run.code, 143)


class HangTest(OperationsTest):
    def test_a_hang_is_explained_while_the_job_runs(self):
        run = self.job(
            f"do=all_reduce={GRADIENTS}", f"!3:in=all_reduce={GRADIENTS}",
            "progress=41=100=0.5", "value=accuracy=0.93", "wait",
        )  # fmt: skip
        api = Api(run)
        status = wait_until(
            lambda: (s := api.json("/status"))["collectives"] and s, "the hang is seen", 40
        )
        found = status["collectives"][0]
        self.assertEqual(found["kind"], "missing", found)
        self.assertEqual(found["suspects"], "3")
        self.assertEqual(found["waiting"], "0-2")
        self.assertEqual((found["operation"], found["sequence"]), ("all_reduce", 2))
        self.assertEqual((found["bytes"], found["data_type"]), (4 * GRADIENTS, "float32"))
        self.assertRegex(found["text"], r"^rank 3 never entered all_reduce #2 \(4.2 MB, float32\)")
        self.assertIn(found["text"], status["attention"])
        self.check_status(api)
        self.check_rank(status["ranks"][0])
        self.check_metrics(api.get("/metrics").body.decode())
        shown = subprocess.run(
            [MUSTER, "status", self.run_folder(self.path("logs"))], capture_output=True,
            timeout=30, env=self.environment(),
        )  # fmt: skip
        self.assertIn(b"rank 3 never entered all_reduce #2", shown.stdout, shown.stderr)
        run.signal(signal.SIGTERM)
        run.wait()
        self.assertIn("rank 3 never entered all_reduce #2", run.err)
        self.assertEqual(self.last_summary()["collectives"][0]["suspects"], "3")

    def check_rank(self, rank):
        self.assertEqual((rank["step"], rank["steps"], rank["loss"]), (41, 100, 0.5))
        self.assertEqual(rank["values"], [["accuracy", 0.93]])
        self.assertEqual(rank["operation"]["state"], "running")
        self.assertIn("all_reduce #2", rank["operation"]["call"])
        self.assertGreater(rank["heartbeat_s"], 5)

    def check_metrics(self, text):
        self.assertIn('muster_rank_value{rank="0",name="accuracy"} 0.93', text)
        self.assertIn('muster_rank_heartbeat_timestamp_seconds{rank="1"}', text)
        self.assertIn("muster_collective_findings 1", text)

    def test_a_mismatch_is_told_when_the_job_is_stopped(self):
        run = self.job(
            f"!2:in=all_reduce={GRADIENTS}", "2:in=broadcast=250", "say=in", "wait",
        )  # fmt: skip
        api = Api(run)
        wait_until(lambda: api.json("/status")["collectives"], "the hang is seen", 40)
        run.signal(signal.SIGTERM)
        run.wait()
        self.assertIn(
            "rank 2 called broadcast #1 (root 0, 1 kB float32) where ranks 0-1, 3 called "
            "all_reduce #1 (sum, 4.2 MB float32)",
            run.err,
        )


class PageTest(OperationsTest):
    def test_a_worker_below_shells_and_another_session_reports_too(self):
        shells = ("bash", "-c", "setsid -w bash -c '\"$@\" & wait' x \"$@\"", "x", WORKER)
        run = self.job("progress=7=9=1", "wait", workers=1, worker=shells)
        api = Api(run)
        wait_until(
            lambda: [s["step"] for s in api.json("/api/v1/samples")["samples"]] == [7],
            "its step is known",
        )
        run.signal(signal.SIGTERM)
        run.wait()

    def test_without_descriptors_the_job_runs_without_pages(self):
        text = 'exec "$0" "$@"'
        run = self.start(
            "-c", f"ulimit -n 80; {text}", MUSTER, "--nproc-per-node", "2", "--log-dir",
            self.path("logs"), "--no-python", "sh", "-c", 'echo "page=$MUSTER_WORKER_PAGE."',
            command=["bash"],
        ).wait()  # fmt: skip
        self.assertEqual(run.code, 0, run.err)
        self.assertEqual(run.out.count("page=."), 2)
        troubles = self.last_summary()["troubles"]
        self.assertEqual([one["subject"] for one in troubles], ["pages"])

    def test_a_page_of_an_outer_muster_is_not_passed_on(self):
        run = self.muster(
            "--no-python", "sh", "-c", "echo page=$MUSTER_WORKER_PAGE",
            env={"MUSTER_WORKER_PAGE": "/proc/1/fd/9"},
        )  # fmt: skip
        self.assertNotIn("/proc/1/fd/9", run.out)
        self.assertIn("page=/proc/", run.out)


class NodesOperationsTest(NodesTest):
    def pair_with(self, *steps):
        worker = (WORKER, "comm=world=0,1,2,3", *steps)
        return self.pair(workers=2, worker=worker)

    def test_pages_of_the_other_node_are_known_at_the_coordinator(self):
        nodes = self.pair_with("do=all_reduce=100", "!3:in=all_reduce=100", "wait")
        api = Api(nodes[0].run)
        found = wait_until(lambda: api.json("/status")["collectives"], "the hang is seen", 60)[0]
        self.assertEqual((found["suspects"], found["waiting"]), ("3", "0-2"), found)
        nodes[0].signal(signal.SIGTERM)
        self.wait_for_end(nodes, 143)
        for node in nodes:
            self.assertIn("rank 3 never entered all_reduce #2", node.run.err)

    def test_both_nodes_tell_what_a_killed_rank_was_in(self):
        nodes = self.pair_with("in=all_reduce=100", "say=in", "wait")
        for node in nodes:
            wait_until(lambda run=node.run: run.out.count("in") == 2, "all are in it")
        spawned = nodes[1].events("worker_spawned", rank=3)[0]
        os.kill(spawned["pid"], signal.SIGKILL)
        self.wait_for_end(nodes, 137)
        for node in nodes:
            self.assertIn("rank 3 died in all_reduce #1 (400 B, float32)", node.run.err)
            self.assertIn("ranks 0-2 were in it too", node.run.err)
            self.assertEqual(node.summary["collectives"][0]["suspects"], "3")


if __name__ == "__main__":
    harness.main()
