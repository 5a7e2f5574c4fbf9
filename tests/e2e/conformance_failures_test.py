# SPDX-License-Identifier: Apache-2.0
"""Rows 40 to 48: error files, exit codes and the report."""

import json
import os

import harness
from conformance import ConformanceTest, row

FULL_ERROR = (
    '{"message": {"message": "ValueError: of the file", "extraInfo": {"py_callstack": '
    '"Traceback (most recent call last):\\n  File \\"x.py\\", line 7, in main\\nValueError: of the '
    'file\\n", "timestamp": "1700000000"}}}'
)


class Failures(ConformanceTest):
    def fails(self, code, *arguments, **options):
        """Runs to a failure; returns the run and its summary."""
        path = self.path("summary.json")
        run = self.muster("--summary", path, *arguments, **options)
        self.assert_code(run, code)
        report = run.err.splitlines()
        self.assertLessEqual(len(report), 32, run.err)  # the report has 25 lines at most
        self.assertNotRegex(run.err, r'(?m)^ *#\d+ 0x|muster::', "a stack of muster's own")
        return run, json.loads(harness.read(path))

    def error_file_worker(self, text, code):
        with open(self.path("error.in"), "w") as file:
            file.write(text)
        return self.script(f'cp "$T/error.in" "$TORCHELASTIC_ERROR_FILE"; exit {code}')

    @row(
        40,
        "worker exits 3 -> exit 1; a summary with exitcode 3, pid, error_file, no other failures",
        "different: exit 3; the report also has the last output",
    )
    def test_exit_code(self):
        run, summary = self.fails(3, "--no-python", self.script('echo "$$" >$T/pid; exit 3'))
        cause = summary["root_cause"]
        self.assertEqual((summary["outcome"], summary["exit_code"]), ("failed", 3))
        self.assertEqual((cause["rank"], cause["local_rank"], cause["exit_code"]), (0, 0, 3))
        self.assertEqual(cause["pid"], int(self.file("pid")))
        self.assertEqual(summary["victims"], [])
        self.assertIn("rank 0", run.err)
        self.assertIn(self.file("pid").strip(), run.err)

    @row(
        41,
        "worker kills itself with 9 -> exitcode -9 (SIGKILL); with 40 -> -40",
        "different: exit 128+n",
    )
    def test_killed_by_a_signal(self):
        run, summary = self.fails(137, "--no-python", self.script("kill -9 $$"))
        self.assertIn("SIGKILL", run.err)
        self.assertEqual(summary["root_cause"]["signal"], "SIGKILL")
        run, summary = self.fails(168, "--no-python", self.script("kill -40 $$"))
        self.assertEqual(summary["exit_code"], 168)
        self.assertIn("40", run.err)

    @row(
        42,
        "rank 1 exits 3, rank 0 exits 7 on SIGTERM -> root cause rank 1, rank 0 a failure",
        "different: rank 0 is a victim, not a failure",
    )
    def test_root_cause_and_victim(self):
        worker = self.script(
            """
            if [ $RANK = 1 ]; then while [ ! -e $T/ready ]; do sleep 0.01; done; exit 3; fi
            trap 'exit 7' TERM
            : >$T/ready
            while :; do sleep 0.05; done
            """
        )
        run, summary = self.fails(3, "--nproc-per-node", "2", "--no-python", worker)
        self.assertEqual(summary["root_cause"]["rank"], 1)
        self.assertEqual([victim["rank"] for victim in summary["victims"]], [0])
        self.assertIn("victim", run.err)

    @row(
        43,
        "a full error file and exit 5, with F as tr's own error file -> F is that object plus "
        "errorCode 5, replacing an earlier F; the summary shows the call stack",
        "different: exit 5",
    )
    def test_error_file_is_passed_on(self):
        own = self.path("F")
        with open(own, "w") as file:
            file.write("from an earlier run")
        worker = self.error_file_worker(FULL_ERROR, 5)
        run, _ = self.fails(5, "--no-python", worker, env={"TORCHELASTIC_ERROR_FILE": own})
        expected = json.loads(FULL_ERROR)
        expected["message"]["errorCode"] = 5
        self.assertEqual(json.loads(harness.read(own)), expected)
        self.assertIn("ValueError: of the file", run.err)
        self.assertIn('File "x.py", line 7', run.err)

    @row(
        44,
        "error file with a plain string as message -> shown; F is a copy without errorCode",
        "different: it counts as written when the worker died, not in 1970",
    )
    def test_plain_message(self):
        own = self.path("F")
        worker = self.error_file_worker('{"message": "plain text"}', 6)
        run, _ = self.fails(6, "--no-python", worker, env={"TORCHELASTIC_ERROR_FILE": own})
        self.assertIn("plain text", run.err)
        self.assertNotIn("1970", run.err)
        self.assertEqual(json.loads(harness.read(own)), {"message": "plain text"})

    @row(
        45,
        "error file empty, truncated, without message or extraInfo -> exit 1 without summary, even "
        "with restarts left",
        "different: the report says that the file was unreadable, and restarts go on",
    )
    def test_malformed_error_files(self):
        broken = ("", '{"message": {"mess', '{"other": 1}', '{"message": {"message": "only this"}}')
        for number, text in enumerate((*broken, "\0\xff" * 100, "[" * 5000)):
            with self.subTest(text=text[:40]):
                worker = self.error_file_worker(text, 5)
                run, summary = self.fails(5, "--no-python", worker)
                self.assertEqual(summary["root_cause"]["exit_code"], 5)
                if number not in (2, 3):
                    self.assertIn("error file", run.err)
        worker = self.script(
            ': >"$TORCHELASTIC_ERROR_FILE"; [ $TORCHELASTIC_RESTART_COUNT = 1 ] || exit 5'
        )
        self.assert_code(self.muster("--max-restarts", "3", "--no-python", worker), 0)

    @row(
        46,
        "error file written but exit 0 -> success; exit 3 without one -> F is not created",
        "different: exit 3 there",
    )
    def test_error_file_of_a_success(self):
        own = self.path("F")
        mine = {"TORCHELASTIC_ERROR_FILE": own}
        worker = self.error_file_worker(FULL_ERROR, 0)
        self.assert_code(self.muster("--no-python", worker, env=mine), 0)
        self.assertFalse(os.path.exists(own))
        self.fails(3, "--no-python", self.script("exit 3"), env=mine)
        self.assertFalse(os.path.exists(own))

    @row(
        47,
        "decorated main raising ValueError -> the traceback is shown; --run-path with sys.exit(6) "
        "-> exitcode 6, exit 1",
        "different: tracebacks are found without the decorator; exit 6",
    )
    def test_python_errors(self):
        # The decorator itself is tested with a real PyTorch in tests/pytorch.
        worker = self.script("def main():\n    raise ValueError('deep inside')\n\nmain()", "bad.py")
        run, summary = self.fails(1, worker)
        self.assertIn("ValueError: deep inside", run.err)
        self.assertIn("bad.py", run.err)
        self.assertEqual(summary["root_cause"]["kind"], "python_exception")
        self.fails(6, "--run-path", self.script("import sys; sys.exit(6)", "six.py"))

    @row(
        48,
        "tr's own failure (executable missing) with F -> F holds that exception",
        "different: exit 127",
    )
    def test_own_failure_in_the_error_file(self):
        own = self.path("F")
        run = self.muster("--no-python", "/nonexistent", env={"TORCHELASTIC_ERROR_FILE": own})
        self.assert_code(run, 127)
        self.assertIn("/nonexistent", json.loads(harness.read(own))["message"]["message"])


if __name__ == "__main__":
    harness.main()
