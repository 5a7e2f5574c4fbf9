# SPDX-License-Identifier: Apache-2.0
"""Rows 30 to 39: log folders, tee, prefixes and filters."""

import os
import stat
import time

import harness
from conformance import ConformanceTest, row


class Logs(ConformanceTest):
    def setUp(self):
        super().setUp()
        self.logs = self.path("L")

    def log(self, rank, stream, attempt=0):
        folder = self.run_folder(self.logs)
        return harness.read(os.path.join(folder, f"attempt_{attempt}", str(rank), stream))

    @row(
        30,
        "no --log-dir -> a torchelastic_* temp folder appears and stays",
        "different: nothing in the temp folder; runs are kept under the user's state folder",
    )
    def test_no_temporary_folder(self):
        # The harness checks after each test that the temporary folder is empty.
        run = self.muster("--no-python", self.script("echo hi"))
        self.assert_code(run, 0)
        self.assertIn(self.path("home"), run.err)

    @row(
        31,
        "-t 3 --log-dir L -> L/<run id>_<8 chars>/attempt_0/0/stdout.log and stderr.log, run "
        "folder mode 0700, raw bytes",
    )
    def test_layout(self):
        worker = self.script(r"printf 'a\r\n\377\000b'; printf 'no newline' >&2")
        words = ("--standalone", "-t", "3", "--log-dir", self.logs)
        self.assert_code(self.muster(*words, "--no-python", worker), 0)
        folder = self.run_folder(self.logs)
        self.assertRegex(os.path.basename(folder), r"^.+_[0-9A-Za-z_]{8}$")
        self.assertEqual(stat.S_IMODE(os.stat(folder).st_mode), 0o700)
        self.assertEqual(self.log(0, "stdout.log"), b"a\r\n\xff\x00b")
        self.assertEqual(self.log(0, "stderr.log"), b"no newline")

    @row(
        32,
        "tee of 'partial' (pause) ' end' -> the header twice; \\r ends a line; 0xff -> U+FFFD",
        "different: one header a line, and bytes are bytes",
    )
    def test_partial_lines_and_bytes(self):
        worker = self.script(r"printf partial; sleep 0.5; printf ' end\n\377x\r\n'")
        words = ("--nproc-per-node", "1", "-t", "1", "--log-dir", self.logs)
        run = self.muster(*words, "--log-line-prefix-template", "<$rank>", "--no-python", worker)
        self.assert_code(run, 0)
        self.assertEqual(harness.read(run.out_path), b"<0>partial end\n<0>\xffx\r\n")

    @row(
        33,
        "a prefix template with ${hostname} $rank ${local_rank} ${role_name} $$ ${nope}; the "
        "option beats TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE, PET_LOG_LINE_PREFIX_TEMPLATE works",
    )
    def test_prefix_template(self):
        template = "<${hostname} $rank ${local_rank} ${role_name} $$ ${nope}> "
        worker = ("--nproc-per-node", "2", "-t", "3", "--no-python", self.script("echo hi"))
        host = os.uname().nodename
        expected = [f"<{host} {rank} {rank} default $ ${{nope}}> hi" for rank in (0, 1)]
        other = {"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": "other "}
        run = self.muster("--log-line-prefix-template", template, *worker, env=other)
        self.assertEqual(sorted(run.out.splitlines()), expected)
        run = self.muster(*worker, env={"PET_LOG_LINE_PREFIX_TEMPLATE": template})
        self.assertEqual(sorted(run.out.splitlines()), expected)
        run = self.muster(*worker, env=other)
        self.assertEqual(run.out.splitlines(), ["other hi"] * 2)

    @row(34, "--local-ranks-filter 1 -> only rank 1 on the console; with -t 1 both files complete")
    def test_local_ranks_filter(self):
        words = ("--nproc-per-node", "2", "-t", "1", "--log-dir", self.logs, "--local-ranks-filter")
        run = self.muster(*words, "1", "--no-python", self.script('echo "hi $RANK"'))
        self.assertIn("hi 1", run.out)
        self.assertNotIn("hi 0", run.out)
        for rank in (0, 1):
            self.assertEqual(self.log(rank, "stdout.log"), f"hi {rank}\n".encode())

    @row(
        35,
        "-t 1 --duplicate-stdout-filters '1/1,zz' -> filtered_stdout.log has only matching lines "
        "with header; 'hello 0,,x' is one needle; without -t the file is empty",
    )
    def test_duplicate_filters(self):
        worker = self.script('echo "step 1/1 of $RANK"; echo "hello $RANK,x"; echo other')
        for tee, needles, expected in (
            ("1", "1/1,zz", ["step 1/1 of 0", "step 1/1 of 1"]),
            ("1", "hello 0,,x", ["hello 0,x"]),
            ("0", "1/1,zz", []),
        ):
            with self.subTest(tee=tee, needles=needles):
                logs = self.path(f"L{tee}{len(needles)}")
                words = ("--nproc-per-node", "2", "-t", tee, "--log-dir", logs)
                filters = ("--duplicate-stdout-filters", needles)
                self.assert_code(self.muster(*words, *filters, "--no-python", worker), 0)
                name = os.path.join(self.run_folder(logs), "attempt_0", "filtered_stdout.log")
                self.assertTrue(os.path.exists(name))
                lines = self.file(name).splitlines()
                self.assertEqual(sorted(line.split(":", 1)[1].strip() for line in lines), expected)
                self.assertTrue(all(line.startswith("[default") for line in lines), lines)

    @row(36, "-r 0:1 -t 1:2 -> exactly 0/stdout.log and 1/stderr.log")
    def test_redirect_map(self):
        words = ("--nproc-per-node", "2", "-r", "0:1", "-t", "1:2", "--log-dir", self.logs)
        worker = self.script('echo "out $RANK"; echo "err $RANK" >&2')
        run = self.muster(*words, "--no-python", worker)
        self.assert_code(run, 0)
        self.assertEqual(self.log(0, "stdout.log"), b"out 0\n")
        self.assertEqual(self.log(1, "stderr.log"), b"err 1\n")
        self.assertNotIn("out 0", run.out)  # redirected: to the file alone
        self.assertIn("out 1", run.out)
        self.assertIn("err 0", run.err)
        self.assertIn("err 1", run.err)

    @row(
        37,
        "--log-dir /dev/null -r 3 -t 3 -> output without header, TORCHELASTIC_ERROR_FILE empty; "
        "plus a duplicate filter -> exit 1",
        "different: no files, but prefixes and redirects still do what they say",
    )
    def test_null_log_folder(self):
        worker = self.script('echo "hi [$TORCHELASTIC_ERROR_FILE]"')
        words = ("--nproc-per-node", "1", "--log-dir", "/dev/null")
        run = self.muster(*words, "-t", "3", "--no-python", worker)
        self.assert_code(run, 0)
        self.assertIn("hi []", run.out)
        filters = ("--duplicate-stdout-filters", "x")
        run = self.muster(*words, "-t", "3", *filters, "--no-python", worker)
        self.assertIn(run.code, (0, 2))
        self.assertNotIn("Traceback", run.err)

    @row(
        38,
        "--log-dir FILE -> exit 1; --log-dir a/b/c is created; --rdzv-id a/b with c10d -> exit 1",
        "different: a run id may contain a slash",
    )
    def test_log_folder_names(self):
        worker = ("--no-python", self.script("echo hi"))
        open(self.path("file"), "w").close()
        run = self.muster("--log-dir", self.path("file"), *worker)
        self.assertNotEqual(run.code, 0)
        self.assertIn(self.path("file"), run.err)
        self.assert_code(self.muster("-t", "1", "--log-dir", "a/b/c", *worker), 0)
        self.assertTrue(os.path.isdir(self.path("a", "b", "c")))
        slash = ("--master-port", "29613", "--rdzv-id", "a/b", "-t", "1", "--log-dir", self.logs)
        self.assert_code(self.muster(*slash, *worker), 0)
        self.assertEqual(self.log(0, "stdout.log"), b"hi\n")

    @row(
        39,
        "-t 1 with stdout a pipe, worker prints hi and sleeps -> hi arrives only at the end",
        "different: a line is written when it arrives",
    )
    def test_lines_arrive_at_once(self):
        worker = self.script("echo hi; while [ ! -e $T/go ]; do sleep 0.05; done")
        read_end, write_end = os.pipe()
        run = self.start("-t", "1", "--no-python", worker, stdout=write_end)
        os.close(write_end)
        started = time.monotonic()
        got = b""
        while b"hi\n" not in got and time.monotonic() - started < harness.PATIENCE:
            got += os.read(read_end, 100)
        self.assertIsNone(run.process.poll(), "muster is still running when the line is here")
        open(self.path("go"), "w").close()
        run.wait()
        os.close(read_end)


if __name__ == "__main__":
    harness.main()
