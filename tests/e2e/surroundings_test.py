# SPDX-License-Identifier: Apache-2.0
"""muster where something that every program takes for granted is missing."""

import os
import resource

import harness
from harness import MusterTest


def close_all():
    for fd in (0, 1, 2):
        os.close(fd)


class Surroundings(MusterTest):
    def test_closed_descriptors_are_nobody_elses(self):
        worker = self.script(
            """
            readlink /proc/self/fd/0
            echo words >&2
            exit 4
            """
        )
        log_dir = self.path("logs")
        run = self.muster(
            "--log-dir", log_dir, "--redirects", "3", "--no-python", worker, preexec_fn=close_all
        )
        self.assert_code(run, 4)
        worker_dir = os.path.join(self.run_folder(log_dir), "attempt_0", "0")
        self.assertEqual(harness.read(os.path.join(worker_dir, "stdout.log")), b"/dev/null\n")
        self.assertEqual(harness.read(os.path.join(worker_dir, "stderr.log")), b"words\n")

    def test_half_a_help_text_is_no_success(self):
        for option in (["--help"], ["--dry-run", "--no-python", "true"]):
            with open("/dev/full", "w") as full:
                run = self.muster(*option, stdout=full)
            self.assert_code(run, 1)
            self.assertIn("muster: write to stdout: No space left on device", run.err)

    def test_a_folder_that_cannot_be_made_is_named_with_its_reason(self):
        run = self.muster("--log-dir", "/sys/muster/logs", "--no-python", "true")
        self.assert_code(run, 1)
        self.assertIn("muster: make folder /sys/muster: ", run.err)
        self.assertNotIn("No such file", run.err)

    def test_a_current_folder_that_is_gone(self):
        gone = self.path("gone")
        os.mkdir(gone)
        remove = {"cwd": gone, "preexec_fn": lambda: os.rmdir(gone)}
        run = self.muster("--log-dir", "logs", "--no-python", "true", **remove)
        self.assert_code(run, 1)
        self.assertIn("make folder logs: there is no current folder", run.err)
        os.mkdir(gone)
        self.assert_code(self.muster("--no-python", "true", **remove), 0)

    def test_a_summary_that_will_find_no_folder_is_refused_at_once(self):
        words = ("--summary", self.path("nowhere", "s.json"), "--no-python", "true")
        run = self.muster(*words)
        self.assert_code(run, 2)
        self.assertIn("nowhere", run.err)

    def test_a_failure_keeps_its_code_when_no_further_attempt_can_be_made(self):
        worker = self.script('rm -rf "$T/logs"/*; exit 3')
        words = ("--log-dir", self.path("logs"), "--max-restarts", "2", "--no-python", worker)
        run = self.muster(*words)
        self.assert_code(run, 3)
        self.assertIn("attempt_1", run.err)

    def test_what_a_worker_redirected_is_read_for_the_report(self):
        worker = self.script("echo the last words; exit 3")
        words = ("-r", "1", "--log-dir", self.path("logs"), "--no-python", worker)
        run = self.muster(*words)
        self.assert_code(run, 3)
        self.assertIn("the last words", run.err)

    def test_a_summary_that_nobody_takes_does_not_hold_the_end(self):
        fifo = self.path("fifo")
        os.mkfifo(fifo)
        run = self.muster("--summary", fifo, "--no-python", self.script("exit 4"))
        self.assert_code(run, 4)
        self.assertIn("open " + fifo, run.err)
        # A reader that reads nothing, behind a pipe that is full.
        reader = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        with self.assertRaises(BlockingIOError):
            while True:
                os.write(reader, bytes(4096))
        run = self.muster("--summary", fifo, "--no-python", self.script("exit 4"))
        self.assert_code(run, 4)
        self.assertIn("does not answer", run.err)

    def test_a_limit_of_file_sizes_costs_log_text_alone(self):
        # The worker writes into a pipe; it is muster's log file that may not grow.
        worker = self.script("head -c 100000 /dev/zero; echo; exit 4")
        limit = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (9999, 9999))}
        run = self.muster(
            "--console", "none", "--log-dir", self.path("logs"), "--no-python", worker, **limit
        )
        self.assert_code(run, 4)
        self.assertIn("File too large", run.err)


if __name__ == "__main__":
    harness.main()
