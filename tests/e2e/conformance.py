# SPDX-License-Identifier: Apache-2.0
"""The table of torchrun 2.14.1's observable behaviours, and what its rows share.

Each row is a test method marked with @row: its number, what torchrun does ("tr" is torchrun) and
whether muster does the same or something deliberately different, with the reason. The rows live in
conformance_*_test.py; conformance_test.py prints the table and sees that no row is missing.

With MUSTER_PEER=1 only the rows marked "same" exist, so that a real torchrun as $MUSTER can show
that the table tells the truth about it.
"""

import os
import re
import unittest

import harness
from harness import MusterTest

SAME = "same"
PEER = os.environ.get("MUSTER_PEER") == "1"
rows = {}


def row(number, behaviour, verdict=SAME):
    assert verdict == SAME or verdict.startswith("different: "), verdict

    def mark(test):
        assert number not in rows, f"row {number} is there twice"
        rows[number] = (behaviour, verdict)
        return test if verdict == SAME or not PEER else None

    return mark


class ConformanceTest(MusterTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if PEER and not os.path.isdir(os.path.join(harness.CACHE, "chroot-forky")):
            raise unittest.SkipTest("no PyTorch chroot; scripts/pytorch-chroot makes it")

    def words(self, name="w.sh"):
        """A worker that writes its arguments, one a line, to args.<rank>."""
        return self.script('for a in "$@"; do echo "$a"; done >"$T/args.$RANK"', name)

    def args_of(self, rank=0):
        return self.file(f"args.{rank}").splitlines()

    def dump(self, name="env.sh"):
        """A worker that writes its environment to env.<rank>."""
        return self.script('env >"$T/env.$RANK.new"; mv "$T/env.$RANK.new" "$T/env.$RANK"', name)

    def env_of(self, rank=0):
        lines = self.file(f"env.{rank}").splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def started(self):
        """What workers of words() and dump() wrote."""
        return sorted(name for name in os.listdir(self.dir) if re.match(r"(args|env)\.\d", name))

    def refused(self, *arguments, code=2, says="", **options):
        """muster refuses this before any worker starts, in a few lines and without a traceback."""
        before = self.started()
        run = self.muster(*arguments, **options)
        self.assert_code(run, code)
        self.assertEqual(self.started(), before, "a worker was started")
        self.assertIn(says, run.err)
        self.assertNotIn("Traceback", run.err)
        if not PEER:
            self.assertLessEqual(len(run.err.splitlines()), 8, run.err)
        return run
