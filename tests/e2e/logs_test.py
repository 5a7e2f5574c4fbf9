# SPDX-License-Identifier: Apache-2.0
"""What workers print: whole in the files, readable on the console, and never in the way."""

import hashlib
import os
import re
import time

import harness
from harness import MusterTest

PROGRESS = r"""
i=0
while [ $i -lt 3000 ]; do printf '\rstep %d of 3000' $i; i=$((i+1)); done
printf '\n'
"""


class Logs(MusterTest):
    def setUp(self):
        super().setUp()
        self.logs = self.path("L")

    def log(self, rank=0, stream="stdout.log", attempt=0):
        folder = self.run_folder(self.logs)
        return harness.read(os.path.join(folder, f"attempt_{attempt}", str(rank), stream))

    def state_folder(self):
        return self.path("home", ".local", "state", "muster", "runs")

    def python(self, text):
        return self.script(text.replace("\n            ", "\n"), "w.py")

    def test_one_worker_has_no_prefix_and_several_have(self):
        worker = self.script("echo hi")
        self.assertEqual(self.muster("--no-python", worker).out, "hi\n")
        run = self.muster("--nproc-per-node", "2", "--no-python", worker)
        self.assertEqual(sorted(run.out.splitlines()), ["[0]: hi", "[1]: hi"])

    def test_the_console_may_be_chosen(self):
        worker = self.script("echo hi")
        for mode, expected in (
            ("raw", ["hi", "hi"]),
            ("lines", ["hi", "hi"]),
            ("prefix", ["[0]: hi", "[1]: hi"]),
            ("none", []),
        ):
            words = ("--console", mode, "--nproc-per-node", "2", "--no-python", worker)
            self.assertEqual(sorted(self.muster(*words).out.splitlines()), expected, mode)

    def test_every_stream_is_kept_without_being_asked_for(self):
        run = self.muster("--no-python", self.script("echo out; echo err >&2"))
        latest = os.path.join(self.state_folder(), "latest")
        self.assertEqual(self.file(latest, "attempt_0", "0", "stdout.log"), "out\n")
        self.assertEqual(self.file(latest, "attempt_0", "0", "stderr.log"), "err\n")
        self.assertIn(os.path.realpath(latest), run.err)

    def test_the_newest_runs_are_kept(self):
        worker = self.script("exit 0")
        for _ in range(5):
            self.muster("--keep-runs", "3", "--no-python", worker)
        names = [name for name in os.listdir(self.state_folder()) if name != "latest"]
        self.assertEqual(len(names), 3)

    def test_a_kept_log_has_its_head_and_its_newest_part(self):
        worker = self.script("seq 1 100000")
        words = ("--log-limit", "64K", "--log-dir", self.logs, "--console", "none")
        self.assert_code(self.muster(*words, "--no-python", worker), 0)
        folder = os.path.join(self.run_folder(self.logs), "attempt_0", "0")
        self.assertEqual(sorted(os.listdir(folder)), ["stdout.log", "stdout.times"])
        whole = harness.read(os.path.join(folder, "stdout.log"))
        self.assertLess(len(whole), 100_000)
        self.assertIn(b"1\n2\n3\n", whole)
        self.assertIn(b"99999\n100000\n", whole)

    def test_a_redirected_stream_is_opened_by_the_worker_itself(self):
        text = "import os, sys; print(os.readlink('/proc/self/fd/1'), file=sys.stderr)"
        run = self.muster("-r", "1", "--log-dir", self.logs, self.script(text, "w.py"))
        self.assertIn(os.path.join(self.run_folder(self.logs), "attempt_0/0/stdout.log"), run.err)

    def test_nothing_is_lost_or_cut_between_noisy_workers(self):
        lines, workers = 20_000, 4
        worker = self.script(f'seq -f "rank $RANK line %06g {"x" * 60}" {lines}')
        words = ("--nproc-per-node", workers, "-t", "3", "--log-dir", self.logs)
        run = self.muster(*words, "--no-python", worker)
        self.assert_code(run, 0)
        expected = [
            [f"rank {rank} line {number:06} {'x' * 60}" for number in range(1, lines + 1)]
            for rank in range(workers)
        ]
        console = run.out.splitlines()
        self.assertEqual(len(console), lines * workers)
        for rank in range(workers):
            self.assertEqual(self.log(rank).decode().splitlines(), expected[rank])
            prefix = f"[default{rank}]:"
            mine = [line[len(prefix) :] for line in console if line.startswith(prefix)]
            self.assertEqual(mine, expected[rank])

    def test_bytes_are_bytes(self):
        worker = self.python(
            """
            import hashlib, os
            data = bytes(range(256)) * 300 + "é".encode()[:1] + b"\\r\\n"
            data += b"y" * (16 << 20) + b"\\nend"
            with open(os.environ["T"] + "/sum", "w") as file:
                file.write(hashlib.sha256(data).hexdigest())
            view = memoryview(data)
            while view:
                view = view[os.write(1, view):]
            """
        )
        words = ("-t", "1", "--log-dir", self.logs, "--console", "raw", worker)
        run = self.muster(*words)
        self.assert_code(run, 0)
        self.assertEqual(hashlib.sha256(self.log()).hexdigest(), self.file("sum"))
        self.assertEqual(hashlib.sha256(harness.read(run.out_path)).hexdigest(), self.file("sum"))

    def test_the_last_words_of_a_killed_worker_are_there(self):
        worker = self.script('printf "last words"; kill -9 $$')
        run = self.muster("-t", "1", "--log-dir", self.logs, "--no-python", worker)
        self.assert_code(run, 137)
        self.assertEqual(self.log(), b"last words")
        self.assertIn("last words", run.out)

    def test_a_child_that_holds_the_pipe_delays_the_end_but_not_for_ever(self):
        worker = self.script("(sleep 0.3; echo late) & echo early")
        run = self.muster("-t", "1", "--log-dir", self.logs, "--no-python", worker)
        self.assertEqual(self.log(), b"early\nlate\n")
        began = time.monotonic()
        self.muster("--no-python", self.script("sleep 600 & echo early"))
        self.assertLess(time.monotonic() - began, 20)

    def test_a_partial_line_is_shown_and_continued(self):
        worker = self.script(
            "printf 'working... '; while [ ! -e $T/go ]; do sleep 0.02; done; echo ok"
        )
        run = self.start("--console", "prefix", "--no-python", worker)
        run.wait_for_output("[0]: working... ")
        open(self.path("go"), "w").close()
        run.wait()
        self.assertEqual(run.out, "[0]: working... ok\n")

    def test_a_progress_bar_is_raw_in_the_file_and_rare_on_the_console(self):
        words = ("--nproc-per-node", "2", "-t", "1", "--log-dir", self.logs)
        run = self.muster(*words, "--no-python", self.script(PROGRESS))
        self.assertEqual(self.log().count(b"\rstep "), 3000)
        self.assertLess(len(run.out.splitlines()), 20, run.out[-2000:])
        self.assertIn("step 2999 of 3000", run.out)

    def test_a_console_that_takes_nothing_stops_no_worker(self):
        read_end, write_end = os.pipe()
        worker = self.script(
            "seq 500000; echo finished >$T/finished; while [ ! -e $T/go ]; do sleep 0.05; done"
        )
        words = ("-t", "1", "--log-dir", self.logs, "--no-python", worker)
        run = self.start(*words, stdout=write_end)
        os.close(write_end)
        self.wait_for_file("finished")
        (supervisor,) = harness.children(run.pid)
        resident = [
            line
            for line in harness.read_proc(supervisor, "status").splitlines()
            if line.startswith(b"VmRSS")
        ]
        if "/release/" in harness.MUSTER:
            self.assertLess(int(resident[0].split()[1]), 64 << 10)
        open(self.path("go"), "w").close()
        text = b""
        while chunk := os.read(read_end, 1 << 20):
            text += chunk
        os.close(read_end)
        self.assert_code(run.wait(), 0)
        self.assertEqual(len(self.log().splitlines()), 500_000)
        # Only its end in a failure's message: the whole text is megabytes.
        self.assertTrue(re.search(rb"\nmuster: [0-9]+ lines skipped here", text), text[-500:])

    def test_closed_standard_streams_stay_out_of_the_way(self):
        worker = self.script("echo out; echo err >&2; exit 4")
        for closed in ((0,), (1,), (2,), (0, 1, 2)):
            logs = self.path("closed" + "".join(map(str, closed)))
            run = self.start(
                *("--log-dir", logs, "--no-python", worker),
                preexec_fn=lambda closed=closed: [os.close(number) for number in closed],
            )
            self.assert_code(run.wait(), 4)
            folder = os.path.join(self.run_folder(logs), "attempt_0", "0")
            self.assertEqual(self.file(folder, "stdout.log"), "out\n", closed)
            self.assertEqual(self.file(folder, "stderr.log"), "err\n", closed)

    def test_equal_lines_are_folded(self):
        worker = self.script('echo "the same"; echo "not the same $RANK"')
        run = self.muster("--fold", "--nproc-per-node", "4", "--no-python", worker)
        lines = run.out.splitlines()
        self.assertIn("[0-3]: the same", lines)
        for rank in range(4):
            self.assertIn(f"[{rank}]: not the same {rank}", lines)

    def test_ranks_may_be_filtered_in_ranges(self):
        words = ("--nproc-per-node", "8", "--ranks-filter", "0,3-4,6", "--no-python")
        run = self.muster(*words, self.script("echo hi"))
        self.assertEqual(sorted(run.out.splitlines()), [f"[{rank}]: hi" for rank in (0, 3, 4, 6)])

    def test_streams_may_be_chosen_by_ranges_of_ranks(self):
        words = ("--nproc-per-node", "12", "-r", "0-9:3,11:1", "--log-dir", self.logs)
        run = self.muster(*words, "--no-python", self.script("echo hi"))
        self.assertEqual(run.out, "[10]: hi\n")

    def test_prefixes_know_more_than_torchrun(self):
        words = ("--log-line-prefix-template", "${pid} ${attempt} ${stream} ${time}|", "-t", "3")
        run = self.muster(*words, "--no-python", self.script("echo $$"))
        self.assertRegex(run.out, r"^([0-9]+) 0 stdout .*[0-9]:[0-9]{2}.*\|\1\n$")


if __name__ == "__main__":
    harness.main()
