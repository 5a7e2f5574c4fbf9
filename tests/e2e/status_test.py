# SPDX-License-Identifier: Apache-2.0
"""What GET /status and the other answers say of a real job in each of its phases, by their schemas."""

import json
import os
import re
import shutil
import signal
import subprocess
import unittest

import harness
from api import Api
from harness import MusterTest, alive, wait_until
from nodes import NodesTest
from schema import check, load, violations

ROWS = ("job", "nodes", "attempts", "ranks", "failures", "samples")

# The wire of PyTorch's store: all ranks but the last wait for a key that nobody sets.
WAITER = """
import os, socket, struct, sys, time
rank = int(os.environ["RANK"])
text = lambda s: struct.pack("<Q", len(s)) + s.encode()
store = socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
store.sendall(struct.pack("<BI", 0, 0x3C85F7CE) + struct.pack("<BI", 13, os.getpid()))
store.recv(4)
if rank == 0:
    store.sendall(b"\\1" + text("/muster/progress/0")
                  + text('{"step": 41, "steps": 100, "loss": 0.5}'))
if rank < int(os.environ["WORLD_SIZE"]) - 1:
    store.sendall(b"\\6" + struct.pack("<Q", 1) + text("/group/0/late"))
time.sleep(1000)
"""

TRAINER = """
import os, time
for step in range(10**9):
    print(f"step {step}/5000 loss: {1 / (step + 1):.4f}", flush=True)
    time.sleep(0.05)
"""

RAISER = """
import os, time
print("begin", flush=True)
if os.environ["RANK"] == "1" and not os.path.exists(os.environ["T"] + "/go"):
    raise ValueError("no such </script> sample")
time.sleep(1000)
"""


class StatusTest(MusterTest):
    def job(self, *words, workers=2, options=()):
        run = self.start("--nproc-per-node", workers, *options, *words)
        return run, Api(run)

    def status_when(self, api, wanted, what):
        return wait_until(lambda: wanted(s := api.json("/status")) and s, what)

    def check_all(self, api):
        """Every answer follows its schema; they are small, and say the same."""
        answer = api.get("/status")
        self.assertLess(len(answer.body), 64 << 10)
        self.assertEqual(violations(answer.json(), "schemas/status.schema.json"), [])
        for name in ROWS:
            rows = api.json("/api/v1/" + name)
            self.assertEqual(violations(rows, f"schemas/{name}.schema.json"), [], name)
        history = api.json("/api/v1/samples?history=1")
        self.assertEqual(violations(history, "schemas/samples.schema.json"), [])
        with api.stream("/api/v1/events?stream=1") as stream:
            (_, _, state) = stream.until(lambda event, data: event == "state")[-1]
        self.assertEqual(violations(state, "schemas/state.schema.json"), [])
        for line in api.get("/api/v1/events").body.splitlines():
            self.assertEqual(violations(json.loads(line), "schemas/event.schema.json"), [])
        self.check_metrics(api.get("/metrics").body)

    def check_metrics(self, text):
        if shutil.which("promtool") is None:
            print("SKIPPED: no promtool", flush=True)
            return
        found = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True)
        self.assertEqual((found.returncode, found.stdout + found.stderr), (0, b""))

    def finish(self, run):
        run.signal(signal.SIGTERM)
        run.wait()


class Phases(StatusTest):
    def test_a_running_job_tells_what_its_ranks_use_and_how_far_they_are(self):
        run, api = self.job(self.script(TRAINER, "train.py"))
        status = self.status_when(
            api,
            lambda s: len(s["ranks"]) == 2 and all(r.get("step", 0) > 3 for r in s["ranks"]),
            "both ranks tell their step",
        )
        self.assertEqual(status["phase"], "running")
        self.assertEqual(status["counts"], {"running": 2})
        for rank in status["ranks"]:
            self.assertTrue(alive(rank["pid"]))
            self.assertGreater(rank["rss_bytes"], 1 << 20)
            self.assertEqual(rank["steps"], 5000)
            self.assertLess(rank["last_output_s"], 10)
        self.assertEqual(status["progress"]["ranks"], 2)
        self.assertEqual([s["rank"] for s in api.json("/api/v1/samples")["samples"]], [0, 1])
        self.assertRegex(api.get("/metrics").body.decode(), r'muster_rank_step\{rank="1"\} \d')
        self.check_all(api)
        page = api.json("/api/v1/logs/0/0/stdout?tail=3")
        self.assertEqual(violations(page, "schemas/page.schema.json"), [])
        merged = api.json("/api/v1/merged?tail=4")
        self.assertEqual(violations(merged, "schemas/merged.schema.json"), [])
        series = api.json("/api/v1/series/0/0")
        self.assertEqual(violations(series, "schemas/series.schema.json"), [])
        for line in api.get("/api/v1/search?q=step&limit=3&context=1").body.splitlines():
            self.assertEqual(violations(json.loads(line), "schemas/search.schema.json"), [])
        self.finish(run)

    def test_a_hang_in_the_store_shows_who_waits_and_who_does_not_come(self):
        run, api = self.job(self.script(WAITER, "wait.py"), workers=4)
        status = self.status_when(
            api, lambda s: s["store"] and s["store"]["waiters"] == 3, "three ranks wait"
        )
        self.assertEqual(status["store"]["waiting_ranks"], "0-2")
        self.assertEqual(status["store"]["other_ranks"], "3")
        (group,) = status["store"]["waits"]
        self.assertEqual((group["keys"], group["ranks"]), (["/group/0/late"], "0-2"))
        status = self.status_when(api, lambda s: s["attention"], "it waits for long")
        self.assertIn("ranks 0-2 wait in the store", status["attention"][0])
        self.assertIn("rank 3 does not wait", status["attention"][0])
        # What a worker reports in the store is its progress.
        self.status_when(api, lambda s: s["ranks"][0].get("step") == 41, "rank 0 has reported")
        self.check_all(api)
        self.finish(run)

    def test_a_failure_is_told_while_the_next_attempt_runs(self):
        run, api = self.job(
            self.script(RAISER, "raise.py"), options=(*harness.RESTART_FREELY, "--max-restarts", 100), workers=3
        )
        status = self.status_when(
            api, lambda s: s["failure"] and s["restarts"]["used"] > 0, "it has failed and restarted"
        )
        cause = status["failure"]
        self.assertEqual((cause["rank"], cause["kind"]), (1, "python_exception"))
        self.assertIn("no such </script> sample", cause["message"])
        self.assertTrue(any("raise ValueError" in line for line in cause["excerpt"]))
        self.assertEqual(cause["victims"][0]["ranks"], "0,2")
        self.assertTrue(cause["hint"])
        with open(self.path("go"), "w"):
            pass
        status = self.status_when(
            api, lambda s: s["phase"] == "running" and s["counts"] == {"running": 3}, "it runs"
        )
        self.assertIsNotNone(status["failure"])
        self.check_all(api)
        failures = api.json("/api/v1/failures")["failures"]
        self.assertEqual(len(failures), status["restarts"]["used"])
        log = api.get(failures[0]["stderr_url"]).body
        self.assertIn(b"ValueError", log)
        self.finish(run)

    def test_a_job_that_is_stopped_says_by_whom(self):
        script = self.script("trap '' TERM; while :; do sleep 0.05; done")
        run, api = self.job("--no-python", script)
        self.status_when(api, lambda s: s["counts"] == {"running": 2}, "it runs")
        run.signal(signal.SIGTERM)
        status = self.status_when(api, lambda s: s["phase"] == "stopping", "it stops")
        self.assertIn("SIGTERM", status["stop"])
        self.assertTrue(status["summary"].startswith("stopping: SIGTERM"), status["summary"])
        self.check_all(api)
        api.post("/api/v1/stop?kill=1", api.bearer)
        run.wait()

    def test_bad_questions_get_clear_answers(self):
        run, api = self.job("--no-python", "sleep", "1000")
        self.status_when(api, lambda s: s["counts"] == {"running": 2}, "it runs")
        for question in ("?ranks=x", "?ranks=7", "?ranks=1-0", "?ranks="):
            answer = api.get("/status" + question)
            self.assertEqual(answer.status, 400)
            self.assertEqual(violations(answer.json(), "schemas/error.schema.json"), [])
        self.assertEqual([r["rank"] for r in api.json("/status?ranks=1")["ranks"]], [1])
        ok = api.post("/api/v1/stop", api.bearer).json()
        self.assertEqual(violations(ok, "schemas/ok.schema.json"), [])
        run.wait()

    def test_what_was_measured_is_in_the_run_s_folder(self):
        run, api = self.job(
            self.script(TRAINER, "train.py"), options=("--log-dir", self.path("L"))
        )
        folder = self.run_folder(self.path("L"))
        wait_until(
            lambda: os.path.exists(os.path.join(folder, "samples.jsonl"))
            and api.json("/api/v1/samples?history=1")["samples"],
            "there is a history",
        )
        self.check_all(api)
        self.finish(run)
        with open(os.path.join(folder, "samples.jsonl")) as file:
            record = json.loads(file.readline())
        self.assertEqual([row[0] for row in record["ranks"]], [0, 1])


class Nodes(NodesTest):
    def test_a_job_that_waits_for_nodes_says_so(self):
        a = self.agent("a")
        api = Api(a.run)
        status = wait_until(
            lambda: (s := api.json("/status"))["phase"] == "waiting" and s, "it waits"
        )
        self.assertEqual(status["waiting"]["have"], 1)
        self.assertEqual(status["waiting"]["min"], 2)
        self.assertEqual(violations(status, "schemas/status.schema.json"), [])
        job = api.json("/api/v1/job")
        self.assertEqual(violations(job, "schemas/job.schema.json"), [])
        a.signal(signal.SIGTERM)
        a.run.wait()

    def test_the_coordinator_s_status_has_both_nodes(self):
        a, b = self.running_pair(workers=2)
        api = Api(a.run)
        status = wait_until(
            lambda: (s := api.json("/status"))["counts"] == {"running": 4}
            and all("rss_bytes" in rank for rank in s["ranks"])
            and s,
            "all ranks are measured",
        )
        self.assertEqual([node["node"] for node in status["nodes"]], [0, 1])
        self.assertEqual([rank["node"] for rank in status["ranks"]], [0, 0, 1, 1])
        self.assertEqual(violations(status, "schemas/status.schema.json"), [])
        for name in ROWS:
            rows = api.json("/api/v1/" + name)
            self.assertEqual(violations(rows, f"schemas/{name}.schema.json"), [], name)
        a.signal(signal.SIGTERM)
        for node in (a, b):
            node.run.wait()


class Viewed(MusterTest):
    def test_an_ended_run_is_shown_as_it_ended(self):
        script = self.script("echo line; [ $RANK = 1 ] && exit 3; exec sleep 1000")
        run = self.muster("--nproc-per-node", 2, "--log-dir", self.path("L"), "--no-python", script)
        self.assert_code(run, 3)
        view = self.start("view", self.run_folder(self.path("L")))
        found = wait_until(lambda: re.search(r"http://\S+token=\w+", view.out + view.err), "a URL")
        api = Api.__new__(Api)
        api.host, port = re.match(r"http://([\d.]+):(\d+)", found.group(0)).groups()
        api.port = int(port)
        api.token = found.group(0).partition("token=")[2]
        status = api.json("/status")
        self.assertEqual((status["phase"], status["outcome"]), ("ended", "failed"))
        self.assertFalse(status["live"])
        self.assertEqual(status["failure"]["rank"], 1)
        self.assertEqual(violations(status, "schemas/status.schema.json"), [])
        for name in ROWS:
            rows = api.json("/api/v1/" + name)
            self.assertEqual(violations(rows, f"schemas/{name}.schema.json"), [], name)
        view.signal(signal.SIGTERM)
        view.wait()


class Schemas(unittest.TestCase):
    def test_the_check_finds_what_is_wrong(self):
        sample = {key: None for key in load("schemas/rows.schema.json")["$defs"]["Sample"]["required"]}
        sample.update(rank=0, time_us=1, values=[], spins=False)
        whole = {"samples": [sample]}
        self.assertEqual(violations(whole, "schemas/samples.schema.json"), [])
        wrongs = {
            "samples.samples[0].cpu: string instead of ['number', 'null']": {"cpu": "1"},
            "samples.samples[0]: unknown extra": {"extra": 1},
        }
        for message, change in wrongs.items():
            bad = {"samples": [{**sample, **change}]}
            self.assertEqual(violations(bad, "schemas/samples.schema.json"), [message])
        del sample["loss"]
        self.assertEqual(
            violations(whole, "schemas/samples.schema.json"), ["samples.samples[0]: no loss"]
        )

    def test_every_schema_is_whole(self):
        folder = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "schemas")
        for name in sorted(os.listdir(folder)):
            schema = load("schemas/" + name)
            self.assertEqual(schema["$id"], "muster.api.v1." + name.partition(".")[0])
            for text in re.findall(r'"\$ref": "([^"]+)"', json.dumps(schema)):
                # Following it is an error if there is nothing.
                check(None, {"$ref": text}, "schemas/" + name, "x")


if __name__ == "__main__":
    harness.main()
