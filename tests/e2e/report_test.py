# SPDX-License-Identifier: Apache-2.0
"""What muster says: while it happens, in the report, in summary.json and in events.jsonl."""

import json
import os
import signal
import subprocess

import harness
from harness import MusterTest
from schema import violations

DEEP = """
def f(n):
    if n == 0:
        raise RuntimeError("at the bottom")
    [f(n - 1)]

print("step 1", flush=True)
print("step 2", flush=True)
f(200)
"""


class Report(MusterTest):
    def run_it(self, *arguments):
        run = self.muster("--summary", self.path("s.json"), *arguments)
        return run, json.loads(self.file("s.json"))

    def report_lines(self, run):
        """From the line that names the culprit to the end."""
        lines = run.err.splitlines()
        starts = [
            n for n, line in enumerate(lines) if line.startswith("muster:") and "rank" in line
        ]
        return lines[starts[-1] :] if starts else lines

    def test_a_deep_traceback_fits_on_a_screen(self):
        run, summary = self.run_it(self.script(DEEP, "deep.py"))
        self.assert_code(run, 1)
        cause = summary["root_cause"]
        self.assertEqual(cause["kind"], "python_exception")
        self.assertEqual(cause["message"], "RuntimeError: at the bottom (deep.py:3)")
        self.assertTrue(any("deep.py" in line for line in cause["excerpt"]), cause["excerpt"])
        self.assertLessEqual(len(self.report_lines(run)), 25)
        self.assertIn("RuntimeError: at the bottom", "\n".join(self.report_lines(run)))

    def test_the_report_identifies_the_culprit(self):
        worker = self.script("echo $$ >$T/pid.$RANK; [ $RANK = 0 ] && exec sleep 600; exit 3")
        run, summary = self.run_it(
            "--nproc-per-node",
            "2",
            "--log-dir",
            self.path("L"),
            "--max-restarts",
            "1",
            "--no-python",
            worker,
        )
        self.assert_code(run, 3)
        report = "\n".join(self.report_lines(run))
        folder = self.run_folder(self.path("L"))
        for expected in ("rank 1", os.uname().nodename, self.file("pid.1").strip(), folder):
            self.assertIn(expected, report)
        self.assertEqual(summary["restarts"], {"used": 1, "max": 1})
        self.assertEqual(summary["root_cause"]["attempt"], 1)
        self.assertEqual(summary["log_dir"], folder)
        self.assertIn("nothing left running", run.err)

    def test_no_restart_was_allowed(self):
        run, _ = self.run_it("--no-python", self.script("exit 3"))
        self.assertRegex(run.err, "(?i)no restart|restarts? .*0|max-restarts 0")

    def test_summaries_follow_their_schema(self):
        workers = {
            "succeeded": ("exit 0", 0),
            "failed": ("[ $RANK = 1 ] && exit 3; exec sleep 600", 3),
        }
        for outcome, (text, code) in workers.items():
            run, summary = self.run_it("--nproc-per-node", "2", "--no-python", self.script(text))
            self.assert_code(run, code)
            self.assertEqual(summary["outcome"], outcome)
            self.assertEqual(summary["exit_code"], code)
            self.assertEqual(violations(summary, "summary.schema.json"), [])
        self.assertEqual(summary["leftovers"], [])
        self.assertEqual(
            violations({**summary, "outcome": "odd"}, "summary.schema.json")[:1],
            [f"summary.outcome: 'odd' is not one of {['succeeded', 'failed', 'stopped']}"],
        )

    def test_a_stop_by_signal_is_told_apart(self):
        worker = self.script(": >$T/ready; exec sleep 600")
        run = self.start("--summary", self.path("s.json"), "--no-python", worker)
        harness.wait_until(lambda: os.path.exists(self.path("ready")), "the worker runs")
        run.signal(signal.SIGTERM)
        self.assert_code(run.wait(), 143)
        summary = json.loads(self.file("s.json"))
        self.assertEqual((summary["outcome"], summary["exit_code"]), ("stopped", 143))
        self.assertIsNone(summary["root_cause"])
        self.assertEqual(violations(summary, "summary.schema.json"), [])
        self.assertIn(str(os.getpid()), run.err)

    def test_a_stop_by_a_batch_system_is_told_apart(self):
        worker = self.script(": >$T/ready; exec sleep 600")
        log_dir = self.path("L")
        run = self.start(
            "--summary", self.path("s.json"), "--log-dir", log_dir, "--no-python", worker
        )
        harness.wait_until(lambda: os.path.exists(self.path("ready")), "the worker runs")
        # The name that the kernel shows is all that muster has; a batch system's step lives on.
        sender = f"echo -n slurmstepd >/proc/$$/comm; kill -TERM {run.pid}; read _"
        with subprocess.Popen(["/bin/bash", "-c", sender], stdin=subprocess.PIPE):
            run.wait_for_message("SIGTERM")
        self.assert_code(run.wait(), 143)
        self.assertEqual(json.loads(self.file("s.json"))["stop"]["kind"], "stopped_by_scheduler")
        self.assertIn("slurmstepd", run.err)
        last = self.file(self.run_folder(log_dir), "events.jsonl").splitlines()[-1]
        self.assertEqual(json.loads(last)["kind"], "stopped_by_scheduler")

    def test_events_tell_the_whole_story(self):
        worker = self.script("echo hi; [ $TORCHELASTIC_RESTART_COUNT = 1 ] || exit 3")
        words = ("--max-restarts", "1", "--log-dir", self.path("L"), "--no-python", worker)
        self.assert_code(self.muster(*words), 0)
        text = self.file(self.run_folder(self.path("L")), "events.jsonl")
        events = [json.loads(line) for line in text.splitlines()]
        self.assertTrue(text.endswith("\n"))
        self.assertEqual([event["seq"] for event in events], list(range(len(events))))
        kinds = [
            next(value for value in event.values() if isinstance(value, str) and "_" in value)
            for event in events
        ]
        self.assertEqual(kinds[0], "job_started")
        self.assertEqual(kinds[-1], "job_ended")
        for kind, count in (
            ("attempt_started", 2),
            ("worker_spawned", 2),
            ("worker_exited", 2),
            ("restart_scheduled", 1),
            ("failure_found", 1),
            ("first_output", 2),
        ):
            self.assertEqual(kinds.count(kind), count, kinds)

    def test_a_death_is_said_while_others_still_stop(self):
        worker = self.script(
            """
            [ $RANK = 1 ] && exit 3
            trap 'while [ ! -e $T/go ]; do sleep 0.02; done; exit 0' TERM
            while :; do sleep 0.02; done
            """
        )
        run = self.start("--nproc-per-node", "2", "--no-python", worker)
        run.wait_for_message("rank 1")
        self.assertIsNone(run.process.poll())
        open(self.path("go"), "w").close()
        self.assert_code(run.wait(), 3)

    def test_some_finished_and_others_not(self):
        worker = self.script("[ $RANK = 0 ] && exit 0; while [ ! -e $T/go ]; do sleep 0.02; done")
        run = self.start("--nproc-per-node", "2", "--no-python", worker)
        run.wait_for_message("finished")
        open(self.path("go"), "w").close()
        self.assert_code(run.wait(), 0)

    def test_a_success_says_little(self):
        run, summary = self.run_it("--no-python", self.script("exit 0"))
        self.assertLessEqual(len(run.err.splitlines()), 4, run.err)
        self.assertEqual(run.err.count("muster: run "), 1, run.err)
        self.assertIsNone(summary["root_cause"])


if __name__ == "__main__":
    harness.main()
