# SPDX-License-Identifier: Apache-2.0
"""Drives the built binary (path in $MUSTER) and checks that a run leaves nothing behind.

A MusterTest has a folder of its own. Every muster started through it gets a home and a temporary
folder in there and a mark in its environment. After each test no process may carry the mark, no
process may have been left to us (the test is a child subreaper, so every orphan would be), and the
temporary folder must be empty.
"""

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

MUSTER = os.environ.get("MUSTER", "")
# Where scripts/pytorch-chroot keeps its chroot, although a test's home is elsewhere.
CACHE = os.environ.get("MUSTER_CACHE") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "muster"
)
# Seconds; far more than anything here needs. A torchrun as peer takes its time.
PATIENCE = 120.0 if os.environ.get("MUSTER_PEER") == "1" else 30.0
MARK = "MUSTER_TEST_MARK"
# For tests that fail in the same way again and again.
RESTART_FREELY = ("--same-failure-limit", "0", "--restart-backoff", "0")
PR_SET_CHILD_SUBREAPER = 36


def wait_until(predicate, what, seconds=PATIENCE):
    deadline = time.monotonic() + seconds
    while True:
        value = predicate()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"gave up waiting until {what}")
        time.sleep(0.005)


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


def alive(pid):
    """True while a process runs; a zombie does not."""
    return process_state(pid) not in ("", "Z", "X")


def process_state(pid):
    stat = read_proc(pid, "stat")
    return stat.rpartition(b")")[2].split()[0].decode() if stat else ""


def read_proc(pid, name):
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:  # gone, or being replaced
        return b""


def children(pid):
    return [int(word) for word in read_proc(pid, f"task/{pid}/children").split()]


def marked_processes(mark):
    needle = f"{MARK}={mark}".encode()
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and needle in read_proc(name, "environ").split(b"\0"):
            if alive(int(name)):
                command = read_proc(name, "cmdline").replace(b"\0", b" ").decode(errors="replace")
                found.append(f"{name} {command.strip()}")
    return found


class Run:
    """One muster: its process and what it printed so far."""

    def __init__(self, folder, command, environment, **options):
        number = len([name for name in os.listdir(folder) if name.endswith(".out")])
        self.out_path = os.path.join(folder, f"{number}.out")
        self.err_path = os.path.join(folder, f"{number}.err")
        with open(self.out_path, "wb") as out, open(self.err_path, "wb") as err:
            options.setdefault("stdin", subprocess.DEVNULL)
            options.setdefault("stdout", out)
            options.setdefault("stderr", err)
            self.process = subprocess.Popen(command, env=environment, **options)
        self.pid = self.process.pid
        self.code = None

    @property
    def out(self):
        return read(self.out_path).decode(errors="surrogateescape")

    @property
    def err(self):
        return read(self.err_path).decode(errors="surrogateescape")

    def wait(self, seconds=PATIENCE):
        """The exit code as a shell gives it."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"muster still runs after {seconds} s\n{self.err}") from None
        self.code = 128 - code if code < 0 else code
        return self

    def signal(self, number):
        os.kill(self.pid, number)

    def wait_for_output(self, text):
        wait_until(lambda: text in self.out, f"{text!r} is on stdout")

    def wait_for_message(self, text):
        wait_until(lambda: text in self.err, f"{text!r} is on stderr")


class MusterTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        if not MUSTER:
            raise unittest.SkipTest("MUSTER does not name a binary")
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="muster-test-")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.mark = uuid.uuid4().hex
        for name in ("home", "tmp", "runs"):
            os.mkdir(self.path(name))
        self.addCleanup(self._check_nothing_left)
        self.addCleanup(self._stop_what_runs)
        self.running = []
        self.muster_was_killed = False  # then its other half is orphaned for a moment

    # -- starting ---------------------------------------------------------------------------------

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def environment(self, **changes):
        kept = ("PATH", "LANG", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS")
        environment = {name: os.environ[name] for name in kept if name in os.environ}
        environment.update(
            HOME=self.path("home"), TMPDIR=self.path("tmp"), PYTHON_EXEC=sys.executable
        )
        environment[MARK] = self.mark
        environment["MUSTER_CACHE"] = CACHE
        environment["T"] = self.dir  # what the workers' scripts call this test's folder
        environment.update(changes)
        return {name: value for name, value in environment.items() if value is not None}

    def start(self, *arguments, env=None, command=None, **options):
        """Starts muster with these arguments; env holds changes, None removes a variable."""
        environment = self.environment(**(env or {}))
        command = (command or [MUSTER]) + [str(word) for word in arguments]
        run = Run(self.path("runs"), command, environment, **{"cwd": self.dir, **options})
        self.running.append(run)
        return run

    def muster(self, *arguments, seconds=PATIENCE, **options):
        """Runs muster to its end."""
        return self.start(*arguments, **options).wait(seconds)

    def script(self, text, name="w.sh"):
        """Makes an executable file: a shell script unless the name ends in .py."""
        path = self.path(name)
        first = "" if name.endswith(".py") else "#!/bin/sh\n"
        with open(path, "w") as file:
            file.write(first + text.strip() + "\n")
        os.chmod(path, 0o755)
        return path

    # -- looking ----------------------------------------------------------------------------------

    def file(self, *names):
        return read(self.path(*names)).decode(errors="surrogateescape")

    def wait_for_file(self, *names):
        """Waits until a worker wrote a whole line to a file of this test; returns its text."""
        path = self.path(*names)
        return wait_until(lambda: read(path).endswith(b"\n") and read(path).decode(), path)

    def run_folder(self, log_dir):
        """The one folder of a run under --log-dir."""
        names = [name for name in os.listdir(log_dir) if name != "latest"]
        self.assertEqual(len(names), 1, names)
        return os.path.join(log_dir, names[0])

    def summary(self, run_folder):
        with open(os.path.join(run_folder, "summary.json")) as file:
            return json.load(file)

    def assert_code(self, run, code):
        self.assertEqual(run.code, code, f"stdout:\n{run.out}\nstderr:\n{run.err}")

    # -- afterwards -------------------------------------------------------------------------------

    def _stop_what_runs(self):
        for run in self.running:
            if run.process.poll() is None:
                self.muster_was_killed = True
                run.process.kill()
                run.process.wait()

    def _check_nothing_left(self):
        left = []
        try:
            # The front may still be ending what a killed supervisor left, and the other way round.
            wait_until(lambda: not marked_processes(self.mark), "no process is left", 10)
        except AssertionError:
            left = marked_processes(self.mark)
            for line in left:
                os.kill(int(line.split()[0]), signal.SIGKILL)
        orphans = [] if self.muster_was_killed or left else children(os.getpid())
        while children(os.getpid()):
            os.waitpid(-1, 0)
        self.assertEqual(left, [], "processes left behind")
        self.assertEqual(orphans, [], "orphans or zombies left behind")
        self.assertEqual(os.listdir(self.path("tmp")), [], "left in the temporary folder")


def main(may_skip=False):
    """Runs the calling module's tests; exit 77 if all were skipped. In CI a skip is a failure
    unless it may be one, which scripts/test_summary.py knows too."""
    program = unittest.main(verbosity=2, exit=False)
    result = program.result
    for _, reason in result.skipped:
        print("SKIPPED:", reason, flush=True)
    if not result.wasSuccessful():
        sys.exit(1)
    if result.skipped:
        if os.environ.get("CI") == "true" and not may_skip:
            sys.exit(1)
        if len(result.skipped) >= result.testsRun:
            sys.exit(77)
    sys.exit(0)
