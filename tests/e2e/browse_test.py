# SPDX-License-Identifier: Apache-2.0
"""Logs read by place: by stream offset and number through the cuts of a bounded log, by time."""

import glob
import json
import os
import signal
import time

import harness
from api import Api
from harness import MusterTest, wait_until

# Lines of 32 bytes that say their own number, so that each says its own place.
LINES = """
import sys
number = 0
while number < int(sys.argv[1]):
    block = "".join(f"line {i:025}.\\n" for i in range(number, number + 1000))
    sys.stdout.write(block)
    sys.stdout.flush()
    number += 1000
"""
LINE = 32
ENDLESS = 1_000_000_000_000


class BrowseTest(MusterTest):
    def setUp(self):
        super().setUp()
        self.logs = self.path("logs")
        self.views = []

    def view(self, folder):
        """The API of `muster view` of that folder."""
        run = self.start("view", "--json", folder)
        run.wait_for_output("\n")
        self.views.append(run)
        return Api(run, json.loads(run.out)["url"])

    def tearDown(self):
        for run in self.views:
            run.signal(signal.SIGTERM)
            run.wait()

    def lines_words(self, count, *more):
        script = self.script(LINES, "lines.py")
        words = ("--log-dir", self.logs, "--console", "none", "--no-python")
        return (*more, *words, "/usr/bin/python3", script, count)

    def log_bytes(self):
        folder = self.run_folder(self.logs)
        return os.path.getsize(os.path.join(folder, "attempt_0", "0", "stdout.log"))

    def check_all(self, api):
        """Every line that is left is the one of its offset and number; how many those are."""
        offset, seen = 0, 0
        while True:
            page = api.json(f"/api/v1/logs/0/0/stdout?offset={offset}&lines=5000")
            for at, number, _, size, ended, text in page["lines"]:
                if not ended:
                    continue
                self.assertEqual((at % LINE, size, text), (0, LINE - 1, f"line {at // LINE:025}."))
                self.assertIn(number, (-1, at // LINE))
            seen += len(page["lines"])
            if not page["lines"] or page["end"] == page["size"] or not page["lines"][-1][4]:
                return seen
            offset = page["end"]

    def test_a_bounded_log_keeps_its_offsets_and_numbers(self):
        count = 100_000
        self.assert_code(self.muster(*self.lines_words(count, "--log-limit", "256K")), 0)
        self.assertLess(self.log_bytes(), 300_000)
        api = self.view(self.run_folder(self.logs))
        page = api.json("/api/v1/logs/0/0/stdout?tail=3")
        self.assertEqual(page["size"], count * LINE)
        self.assertEqual(page["total_lines"], count)
        self.assertEqual([line[1] for line in page["lines"]], [count - 3, count - 2, count - 1])
        begin, end = page["hole"]
        self.assertEqual(self.check_all(api), (page["size"] - (end - begin)) // LINE)
        page = api.json(f"/api/v1/logs/0/0/stdout?offset={(begin + end) // 2}&lines=1")
        self.assertEqual(page["lines"][0][0], end)

    def test_a_running_cut_never_shows_a_wrong_line(self):
        words = self.lines_words(ENDLESS, "--log-limit", "4M")
        run = self.start(*words)
        api = Api(run)
        holes = set()
        deadline = time.monotonic() + harness.PATIENCE
        while len(holes) < 5 and time.monotonic() < deadline:
            page = api.json("/api/v1/logs/0/0/stdout?tail=500")
            for at, _, _, _, ended, text in page["lines"]:
                if ended:
                    self.assertEqual(text, f"line {at // LINE:025}.")
            if page["hole"]:
                holes.add(page["hole"][1])
        self.assertGreaterEqual(len(holes), 5)
        run.signal(signal.SIGTERM)
        run.wait()

    def test_muster_killed_while_it_cuts_leaves_every_line_in_its_place(self):
        for _ in range(3):
            self.logs = self.path(f"logs{len(self.views)}")
            run = self.start(*self.lines_words(ENDLESS, "--log-limit", "4M"))
            times = os.path.join(self.logs, "*", "attempt_0", "0", "stdout.times")
            wait_until(lambda: glob.glob(times), "the log is there")
            wait_until(lambda: self.log_bytes() > 3_900_000, "the log is about to be cut")
            self.muster_was_killed = True
            supervisor = harness.children(run.pid)
            os.kill(run.pid, signal.SIGSTOP)
            for pid in [*supervisor, run.pid]:
                os.kill(pid, signal.SIGKILL)
            run.wait()
            api = self.view(self.run_folder(self.logs))
            page = api.json("/api/v1/logs/0/0/stdout?tail=1")
            self.assertGreater(page["size"], 3_900_000)
            self.assertGreater(self.check_all(api), 40_000)

    def test_lines_of_ranks_come_by_time(self):
        # They take turns by a file, so that the order is known.
        text = """
            import os, sys, time
            rank, turns = int(os.environ["RANK"]), os.environ["T"] + "/turns"
            for turn in range(6):
                while not (os.path.exists(turns) and os.path.getsize(turns) == 2 * turn + rank):
                    if turn + rank == 0 and not os.path.exists(turns):
                        open(turns, "w").close()
                    time.sleep(0.01)
                print(f"turn {turn} of {rank} step {turn}/6 loss {6 - turn}", flush=True)
                time.sleep(0.2)
                with open(turns, "a") as file:
                    file.write(".")
        """
        lines = [line[12:] for line in text.strip("\n").splitlines()]
        script = self.script("\n".join(lines), "turns.py")
        run = self.muster("--nproc-per-node", 2, "--log-dir", self.logs, script)
        self.assert_code(run, 0)
        api = self.view(self.run_folder(self.logs))
        told = api.json("/api/v1/merged?streams=stdout&lines=5")
        texts = [line[7] for line in told["lines"]]
        told = api.json("/api/v1/merged?streams=stdout&lines=50&cursor=" + told["next"])
        texts += [line[7] for line in told["lines"]]
        self.assertTrue(told["at_end"])
        wanted = [
            f"turn {turn} of {rank} step {turn}/6 loss {6 - turn}"
            for turn in range(6)
            for rank in range(2)
        ]
        self.assertEqual(texts, wanted)
        points = api.json("/api/v1/series/0/1")["points"]
        self.assertEqual([point[1:] for point in points], [[i, 6, 6 - i] for i in range(6)])
        self.assertEqual(sorted(points), points)
        self.assertGreater(points[0][0], time.time() * 1e6 - 1e9)

    def test_a_log_that_the_worker_writes_itself_has_no_times(self):
        run = self.muster("-r", 1, "--log-dir", self.logs, "--no-python", "echo", "hello")
        self.assert_code(run, 0)
        folder = os.path.join(self.run_folder(self.logs), "attempt_0", "0")
        self.assertEqual(os.listdir(folder), ["stdout.log"])
        api = self.view(self.run_folder(self.logs))
        self.assertEqual(api.json("/api/v1/merged?streams=stdout")["untimed"], [0])
        page = api.json("/api/v1/logs/0/0/stdout?tail=5")
        self.assertEqual(page["lines"], [[0, 0, 0, 5, True, "hello"]])
        self.assertEqual(api.get("/api/v1/logs/0/0/stdout?time=5").status, 409)


if __name__ == "__main__":
    harness.main()
