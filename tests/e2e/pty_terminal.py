# SPDX-License-Identifier: Apache-2.0
"""A terminal for a command that looks at one: what it draws, and whether it gives it back."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios

from harness import MUSTER, wait_until


class Terminal:
    """muster on a terminal of its own, in a session of its own."""

    def __init__(self, test, *words, **changes):
        environment = test.environment(TERM="xterm", **changes)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(test.dir)
            os.execve(MUSTER, [MUSTER, *words], environment)
        self.code = None
        self.text = b""
        test.addCleanup(self._end)
        self.resize(30, 100)

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def send(self, keys):
        os.write(self.fd, keys)

    def forget(self):
        self.text = b""

    def read(self):
        while select.select([self.fd], [], [], 0)[0]:
            try:
                some = os.read(self.fd, 65536)
            except OSError:  # the other side is closed
                return
            if not some:
                return
            self.text += some

    def wait_for(self, text):
        def seen():
            self.read()
            return text in re.sub(r"\033\[[0-9;]*m", "", self.text.decode(errors="replace"))

        wait_until(seen, f"the terminal shows {text!r}")

    def raw(self):
        return not termios.tcgetattr(self.fd)[3] & termios.ICANON

    def wait(self):
        def ended():
            self.read()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid == 0:
                return False
            code = os.waitstatus_to_exitcode(status)
            self.code = 128 - code if code < 0 else code
            return True

        wait_until(ended, "the command ended")
        self.read()
        return self.code

    def check_given_back(self):
        wait_until(lambda: self.read() or b"\033[?1049l" in self.text, "the screen is back")
        enter, leave = self.text.rfind(b"\033[?1049h"), self.text.rfind(b"\033[?1049l")
        assert leave > enter, "the alternate screen is left"
        assert self.text.rfind(b"\033[?25h") > enter, "the cursor is shown"
        assert not self.raw(), "the keyboard is as before"

    def _end(self):
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)
