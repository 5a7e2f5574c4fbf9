# SPDX-License-Identifier: Apache-2.0
"""Where running workers are: muster dump, its files and its record, on one node and on two."""

import json
import os
import signal
import unittest

import harness
from api import Api
from harness import MusterTest, wait_until
from nodes import NodesTest

HANG = os.path.join(os.environ.get("MUSTER_BUILD", ""), "tests", "helpers", "hang_in_threads")


def asleep(pid):
    return harness.process_state(pid) == "S"


def stopped(pid):
    return harness.process_state(pid) == "T"


# Does what PyTorch does: makes its pipe, and writes its dump when it is asked through it.
RECORDER = """
import os, select, time
rank = os.environ["RANK"]
path = os.environ["TORCH_NCCL_DEBUG_INFO_PIPE_FILE"] + rank + ".pipe"
os.mkfifo(path)
pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
print("up", flush=True)
while select.select([pipe], [], []) and os.read(pipe, 128):
    with open(os.environ["TORCH_FR_DUMP_TEMP_FILE"] + rank, "w") as dump:
        dump.write(f"collectives of {rank}")
time.sleep(1000)
"""


class DumpTest(MusterTest):
    def hanging_job(self, workers):
        run = self.start("--nproc-per-node", workers, "--no-python", HANG)
        api = Api(run)
        return run, api, wait_until(lambda: self.pids(api, workers), "all workers hang")

    def pids(self, api, workers):
        rows = api.json("/api/v1/ranks")["ranks"]
        pids = {row["rank"]: row["pid"] for row in rows if row["pid"]}
        threads = [os.listdir(f"/proc/{pid}/task") for pid in pids.values()]
        # The main thread sleeps when it has made the others.
        hang = all(len(t) == 3 for t in threads) and all(map(asleep, pids.values()))
        return pids if len(pids) == workers and hang else None

    def end(self, run):
        run.signal(signal.SIGTERM)
        run.wait()

    def test_ranks_that_do_the_same_are_told_together_and_the_odd_one_is_named(self):
        run, _, pids = self.hanging_job(3)
        os.kill(pids[2], signal.SIGSTOP)
        wait_until(lambda: stopped(pids[2]), "rank 2 is stopped")
        dump = self.muster("dump")
        self.assertEqual(dump.code, 0, dump.err)
        same, odd, where = dump.out.splitlines()
        self.assertRegex(same, r"^ranks 0-1: .*nanosleep.* < sleep < stay < main$")
        self.assertRegex(odd, r"^rank 2 differs: stopped \(SIGSTOP or Ctrl-Z\).* < stay < main$")
        folder = where.partition(": ")[2]
        self.assertTrue(folder.endswith("/attempt_0/stacks_0"), where)
        self.assertEqual(sorted(os.listdir(folder)), ["rank_0.txt", "rank_1.txt", "rank_2.txt"])
        text = harness.read(os.path.join(folder, "rank_0.txt")).decode()
        for function in ("take_lock", "spin", "stay"):
            self.assertRegex(text, rf"#\d+ {function} at hang_in_threads.cc:\d+ in hang_in_threads")
        self.assertTrue(stopped(pids[2]), "it stays as it was")
        self.end(run)

    def test_a_python_program_is_seen_by_its_own_names_and_lines(self):
        with open(self.path("train.py"), "w") as file:
            file.write("import time\ndef load_batch():\n    time.sleep(1000)\n\nload_batch()\n")
        run = self.start(
            "--nproc-per-node", 2, "--no-python", "/usr/bin/python3", self.path("train.py")
        )
        Api(run)
        where = "load_batch (train.py:3) < <module> (train.py:5)"
        wait_until(lambda: where in self.muster("dump").out, "both ranks are in load_batch")
        dump = self.muster("dump").out
        self.assertRegex(dump.splitlines()[0], r"^ranks 0-1: ")
        self.end(run)

    def test_so_is_one_of_the_newest_python(self):
        if not os.path.isdir(os.path.join(harness.CACHE, "chroot-forky")):
            self.skipTest("no PyTorch chroot; scripts/pytorch-chroot makes it")
        in_chroot = os.path.join(os.path.dirname(__file__), "../../scripts/in-chroot")
        code = "import time\ndef load_batch():\n    time.sleep(1000)\n\nload_batch()\n"
        run = self.start("--no-python", in_chroot, "/usr/bin/python3", "-c", code)
        Api(run)
        where = "load_batch (<string>:3) < <module> (<string>:5)"
        wait_until(lambda: where in self.muster("dump").out, "it is in load_batch")
        self.end(run)

    def recording_job(self, *options):
        with open(self.path("train.py"), "w") as file:
            file.write(RECORDER)
        words = ["--log-dir", self.path("logs"), "--nproc-per-node", 2, *options]
        run = self.start(*words, "--no-python", "/usr/bin/python3", self.path("train.py"))
        wait_until(lambda: run.out.count("up") == 2, "both make their pipes")
        return run, os.path.join(self.run_folder(self.path("logs")), "attempt_0")

    def test_the_flight_recorder_is_asked_and_its_dumps_lie_beside_the_stacks(self):
        run, attempt = self.recording_job()
        dump = self.muster("dump", os.path.dirname(attempt))
        self.assertEqual(dump.code, 0, dump.err)
        saved = os.path.join(attempt, "stacks_0")
        for rank in "01":
            dump = harness.read(os.path.join(saved, "flight_recorder_" + rank))
            self.assertEqual(dump, b"collectives of " + rank.encode())
            self.assertTrue(
                os.path.exists(os.path.join(attempt, rank, f"flight_recorder_{rank}.pipe"))
            )
        self.end(run)
        for rank in "01":
            self.assertEqual(
                [n for n in os.listdir(os.path.join(attempt, rank)) if "pipe" in n], []
            )

    def test_it_is_asked_before_a_hung_rank_is_ended(self):
        run, attempt = self.recording_job("--hang-timeout", "3:fail")
        self.assert_code(run.wait(60), 1)
        for rank in "01":
            dump = harness.read(os.path.join(attempt, "stacks_0", "flight_recorder_" + rank))
            self.assertEqual(dump, b"collectives of " + rank.encode())

    def test_the_answer_for_programs_and_the_record_say_the_same(self):
        run, api, _ = self.hanging_job(1)
        answer = api.post("/api/v1/dump", api.bearer).json()
        self.assertEqual([node["trouble"] for node in answer["saved"]], [""])
        self.assertEqual(answer["saved"][0]["why"], "asked by HTTP from 127.0.0.1")
        self.assertEqual(len(answer["groups"]), 1)
        lines = api.get("/api/v1/events").body.splitlines()
        saved = [e for e in map(json.loads, lines) if e["event"] == "evidence_saved"]
        self.assertEqual([e["folder"] for e in saved], [answer["saved"][0]["folder"]])
        self.assertEqual(saved[0]["groups"], answer["groups"])
        run.wait_for_message("stacks of the workers: ")
        self.end(run)

    def test_whoever_has_no_token_gets_nothing(self):
        run, api, _ = self.hanging_job(1)
        self.assertEqual(api.post("/api/v1/dump").status, 401)
        self.end(run)

    def test_a_job_that_is_over_has_nothing_to_see(self):
        self.muster("--no-python", "/bin/true")
        dump = self.muster("dump")
        self.assertEqual(dump.code, 4)
        self.assertIn("the run is over", dump.err)


class NodesDumpTest(NodesTest):
    def test_each_node_saves_its_own_and_the_groups_are_of_all(self):
        a, b = self.running_pair(workers=2)
        api = Api(a.run)
        answer = api.post("/api/v1/dump", api.bearer).json()
        self.assertEqual(len(answer["saved"]), 2, answer)
        self.assertTrue(any("ranks 0-3: " in line for line in answer["groups"]), answer)
        # The coordinator's record is the whole job's.
        wait_until(lambda: len(a.events("evidence_saved")) == 2, "a records what both saved")
        folders = [saved["folder"] for saved in a.events("evidence_saved")]
        for node in (a, b):
            own = [folder for folder in folders if folder.startswith(node.run_folder)]
            self.assertEqual(len(own), 1, folders)
            self.assertEqual(node.events("evidence_saved", folder=own[0])[0]["trouble"], "")
            self.assertEqual(len(os.listdir(own[0])), 2)

    def test_any_node_may_be_asked(self):
        a, b = self.running_pair()
        api = Api(b.run)
        answer = api.post("/api/v1/dump", api.bearer).json()
        self.assertEqual(len(answer["saved"]), 1, answer)
        a.wait_for_event("evidence_saved")


if __name__ == "__main__":
    unittest.main(verbosity=2)
