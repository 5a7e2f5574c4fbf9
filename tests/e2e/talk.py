# SPDX-License-Identifier: Apache-2.0
"""A program that answers each line with one."""

import subprocess

PATIENCE = 120  # seconds


class Talk:
    """Ended, by the end of its input, when the test is over."""

    def __init__(self, test, command, env=None):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        )
        test.addCleanup(self.end)

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def next(self):
        return self.process.stdout.readline().rstrip("\n")

    def ask(self, line):
        self.say(line)
        return self.next()

    def end(self):
        if not self.process.stdin.closed:
            self.process.stdin.close()
        self.process.wait(PATIENCE)
        self.process.stdout.close()
