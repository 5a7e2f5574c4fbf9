# SPDX-License-Identifier: Apache-2.0
"""muster on a terminal: stdin, breakpoint(), Ctrl-C, pseudo-terminals for the workers."""

import fcntl
import os
import pty
import select
import signal
import subprocess
import termios
import time

import harness
from harness import MusterTest


class Terminal:
    """A terminal of ours with muster as its foreground job."""

    def __init__(self, test, *arguments):
        self.master, slave = pty.openpty()
        self.text = ""
        self.run = test.start(
            *arguments,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)
        test.addCleanup(os.close, self.master)

    def type(self, text):
        os.write(self.master, text.encode())

    def read_some(self, seconds):
        if select.select([self.master], [], [], seconds)[0]:
            try:
                self.text += os.read(self.master, 65536).decode(errors="replace")
            except OSError:  # the other side is closed
                return False
        return True

    def wait_for(self, text):
        deadline = time.monotonic() + harness.PATIENCE
        while text not in self.text:
            if time.monotonic() > deadline or not self.read_some(0.1):
                raise AssertionError(f"no {text!r} in:\n{self.text}")

    def wait(self):
        deadline = time.monotonic() + harness.PATIENCE
        while self.run.process.poll() is None and time.monotonic() < deadline:
            self.read_some(0.05)
        while select.select([self.master], [], [], 0)[0] and self.read_some(0):
            pass
        return self.run.wait(1)


class OnATerminal(MusterTest):
    def test_one_rank_reads_the_terminal(self):
        worker = self.script('read line; echo "rank $RANK read <$line>"')
        terminal = Terminal(self, "--nproc-per-node", "2", "--no-python", worker)
        terminal.wait_for("rank 1 read <>")
        terminal.type("typed\n")
        terminal.wait_for("rank 0 read <typed>")
        self.assert_code(terminal.wait(), 0)

    def test_another_rank_may_be_chosen(self):
        worker = self.script('read line; echo "rank $RANK read <$line>"')
        words = ("--nproc-per-node", "2", "--stdin-rank", "1", "--no-python", worker)
        run = self.start(*words, stdin=subprocess.PIPE)
        run.process.stdin.write(b"sent\n")
        run.process.stdin.close()
        run.wait()
        self.assertIn("rank 1 read <sent>", run.out)
        self.assertIn("rank 0 read <>", run.out)

    def test_breakpoint_works(self):
        script = self.script("x = 6\nbreakpoint()\nprint('went on', x + 1)", "stops.py")
        terminal = Terminal(self, script)
        terminal.wait_for("(Pdb)")
        terminal.type("x * 7\n")
        terminal.wait_for("42")
        terminal.type("c\n")
        terminal.wait_for("went on 7")
        self.assert_code(terminal.wait(), 0)

    def test_ctrl_c_stops_the_job(self):
        worker = self.script("trap 'exit 0' INT; echo ready; while :; do sleep 0.05; done")
        terminal = Terminal(self, "--nproc-per-node", "2", "--no-python", worker)
        terminal.wait_for("ready")
        terminal.wait_for("ready")
        terminal.type("\x03")
        self.assert_code(terminal.wait(), 130)
        self.assertIn("SIGINT", terminal.text)

    def test_a_second_ctrl_c_kills_at_once(self):
        worker = self.script("trap '' INT TERM; echo ready; while :; do sleep 0.05; done")
        words = ("--shutdown-timeout", "600", "--no-python", worker)
        terminal = Terminal(self, *words)
        terminal.wait_for("ready")
        terminal.type("\x03")
        terminal.wait_for("SIGINT")
        terminal.type("\x03")
        self.assert_code(terminal.wait(), 130)

    def test_a_closed_terminal_ends_the_job(self):
        worker = self.script("echo ready; exec sleep 600")
        terminal = Terminal(self, "--no-python", worker)
        terminal.wait_for("ready")
        os.kill(terminal.run.pid, signal.SIGHUP)
        self.assert_code(terminal.wait(), 129)

    def test_workers_get_terminals_of_their_own(self):
        worker = self.script('test -t 1 && test -t 2 && echo "rank $RANK has one"')
        run = self.muster("--pty", "--nproc-per-node", "2", "--no-python", worker)
        self.assert_code(run, 0)
        for rank in (0, 1):
            self.assertIn(f"rank {rank} has one", run.out + run.err)

    def test_a_stopped_terminal_stops_no_worker(self):
        worker = self.script("echo ready; seq 200000; echo finished >$T/finished; read line")
        terminal = Terminal(self, "--no-python", worker)
        terminal.wait_for("ready")  # from here on nobody reads: the terminal's buffer is soon full
        self.wait_for_file("finished")
        terminal.type("\n")
        self.assert_code(terminal.wait(), 0)

    def stopped_with_a_failed_job(self):
        worker = self.script("echo ready; seq 200000; echo finished >$T/finished; exit 3")
        terminal = Terminal(self, "--no-python", worker)
        terminal.wait_for("ready")
        self.wait_for_file("finished")
        return terminal

    def test_a_stopped_terminal_gets_its_report_when_it_goes_on(self):
        terminal = self.stopped_with_a_failed_job()
        # Longer than any other console is waited for, with nobody reading.
        with self.assertRaises(subprocess.TimeoutExpired):
            terminal.run.process.wait(7)
        terminal.wait_for("nothing left running")
        self.assert_code(terminal.wait(), 3)

    def test_a_signal_ends_the_wait_for_a_stopped_terminal(self):
        terminal = self.stopped_with_a_failed_job()
        (supervisor,) = harness.children(terminal.run.pid)
        harness.wait_until(lambda: not harness.children(supervisor), "the worker is gone")
        terminal.run.signal(signal.SIGTERM)
        terminal.run.signal(signal.SIGINT)
        self.assertIsNotNone(terminal.run.process.wait(harness.PATIENCE))


if __name__ == "__main__":
    harness.main()
