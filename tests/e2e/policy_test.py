# SPDX-License-Identifier: Apache-2.0
"""What follows a failure is what was asked for, and the report says why."""

import json
import os
import signal

import harness
from harness import MusterTest


class Policy(MusterTest):
    def run_it(self, *words, code):
        run = self.muster("--log-dir", self.path("L"), "--summary", self.path("s.json"), *words)
        self.assert_code(run, code)
        return run, json.loads(self.file("s.json"))["restarts"]["used"]

    def events(self, name):
        lines = self.file(self.run_folder(self.path("L")), "events.jsonl").splitlines()
        return [event for event in map(json.loads, lines) if event["event"] == name]

    def test_a_kind_of_failure_ends_the_job(self):
        worker = self.script("kill -SEGV $$")
        words = ("--max-restarts", 3, "--failure-policy", "any=restart,segfault=stop")
        run, used = self.run_it(*words, "--no-python", worker, code=128 + signal.SIGSEGV)
        self.assertEqual(used, 0)
        why = "not retried: --failure-policy stops the job for segfault"
        self.assertIn(f"restarts     0 of 3 used · {why}", run.err)
        [denied] = self.events("restart_denied")
        self.assertEqual((denied["attempt"], denied["reason"]), (0, why))

    def test_what_cannot_heal_is_retried_if_its_kind_is(self):
        broken = self.script("def (:", "syntax.py")
        words = ("--max-restarts", 1, "--failure-policy", "python_syntax_error=restart")
        _, used = self.run_it(*words, broken, code=1)
        self.assertEqual(used, 1)

    def test_the_same_failure_again_and_again_ends_the_job(self):
        worker = self.script("exit 3")
        words = ("--max-restarts", 50, "--restart-backoff", 0)
        run, used = self.run_it(*words, "--no-python", worker, code=3)
        self.assertEqual(used, 2)
        self.assertIn(
            "restarts     2 of 50 used · not retried: the same failure came 3 times within 10 "
            "minutes (--same-failure-limit 3/10)",
            run.err,
        )

    def test_restarts_in_a_row_wait_longer_and_longer(self):
        worker = self.script("exit $((3 + TORCHELASTIC_RESTART_COUNT))")
        words = ("--max-restarts", 3, "--restart-backoff", "0.2:10")
        run, _ = self.run_it(*words, "--no-python", worker, code=6)
        planned = self.events("restart_scheduled")
        self.assertEqual([event["delay_ms"] for event in planned], [0, 200, 400])
        began = self.events("attempt_started")
        for event, attempt in zip(planned, began[1:]):
            waited_us = attempt["mono_us"] - event["mono_us"]
            # A timer counts from the beginning of its loop's turn, which is a while ago at times.
            self.assertGreaterEqual(waited_us, event["delay_ms"] * 1000 * 0.8)
        self.assertIn("restarting in 200 ms (attempt 3 of 4)", run.err)

    def test_a_signal_ends_the_wait_for_a_restart(self):
        worker = self.script("exit $((3 + TORCHELASTIC_RESTART_COUNT))")
        words = ("--max-restarts", 3, "--restart-backoff", 600, "--no-python", worker)
        run = self.start(*words)
        run.wait_for_message("restarting in 00:10:00")
        run.signal(signal.SIGTERM)
        self.assert_code(run.wait(), 143)

    def test_each_verdict_is_told_to_the_command_of_the_user(self):
        worker = self.script("echo boom >&2; exit $((3 + TORCHELASTIC_RESTART_COUNT))")
        hook = f"cat >>{self.path('told')}"
        words = ("--max-restarts", 1, "--on-failure", hook, "--nproc-per-node", 1)
        self.run_it(*words, "--no-python", worker, code=4)
        first, second = map(json.loads, self.file("told").splitlines())
        self.assertEqual(first["schema"], "muster.verdict.v1")
        self.assertEqual([first["next"], second["next"]], ["restart", "end"])
        self.assertEqual([first["exit_code"], second["exit_code"]], [None, 4])
        self.assertEqual([first["attempt"], second["attempt"]], [0, 1])
        self.assertEqual(first["failure"]["exit_code"], 3)
        self.assertEqual(first["failure"]["excerpt"], ["boom"])
        self.assertEqual(second["no_restart"], "no restart is left (--max-restarts 1)")
        self.assertEqual(second["restarts"], {"used": 1, "max": 1})
        self.assertEqual(second["log_dir"], self.run_folder(self.path("L")))

    def test_a_command_that_fails_is_told_after_the_cause(self):
        worker = self.script("exit $((3 + TORCHELASTIC_RESTART_COUNT))")
        hook = "cat >/dev/null; echo no route to anybody >&2; exit 7"
        run, _ = self.run_it(
            *("--max-restarts", 1, "--restart-backoff", 0),
            *("--on-failure", hook, "--no-python", worker),
            code=4,
        )
        said = "on-failure: exited with code 7: no route to anybody"
        self.assertIn(said, run.err.splitlines()[-1])
        self.assertLess(run.err.index("root cause"), run.err.rindex(said))

    def test_the_job_goes_on_while_the_command_runs(self):
        worker = self.script(
            """
            if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then exit 3; fi
            while [ ! -e $T/begun ]; do sleep 0.01; done
            : >$T/second
            """
        )
        begun, second = self.path("begun"), self.path("second")
        hook = f": >{begun}; while [ ! -e {second} ]; do sleep 0.01; done; sleep 0.2; : >{begun}.2"
        words = ("--max-restarts", 1, "--on-failure", hook, "--no-python", worker)
        run, _ = self.run_it(*words, code=0)
        self.assertNotIn("on-failure", run.err)
        self.assertNotIn("had to be ended", run.err)
        self.assertTrue(os.path.exists(self.path("begun.2")), "muster waits for it at its end")

    def test_a_job_that_succeeds_or_is_stopped_tells_nobody(self):
        hook = f": >{self.path('told')}"
        self.run_it("--on-failure", hook, "--no-python", self.script("exit 0"), code=0)
        worker = self.script("echo >$T/ready; exec sleep 600")
        run = self.start("--on-failure", hook, "--no-python", worker)
        self.wait_for_file("ready")
        run.signal(signal.SIGTERM)
        self.assert_code(run.wait(), 143)
        self.assertFalse(os.path.exists(self.path("told")))

    def test_a_slip_in_a_policy_is_told(self):
        worker = self.script("exit 0")
        run = self.muster("--failure-policy", "segfalt=stop", "--no-python", worker)
        self.assert_code(run, 0)
        self.assertIn("did you mean segfault?", run.err)
        for option, value in (
            ("--failure-policy", "segfault=halt"),
            ("--same-failure-limit", "3"),
            ("--restart-backoff", "60:1"),
        ):
            run = self.muster(option, value, "--no-python", worker)
            self.assert_code(run, 2)
            self.assertIn(option, run.err)


if __name__ == "__main__":
    harness.main()
