# SPDX-License-Identifier: Apache-2.0
"""C++ ranks under muster: they find each other by their environment, and again in each attempt."""

import os

import harness
from harness import MusterTest

MEMBER = os.path.join(os.environ["MUSTER_BUILD"], "tests", "nccl", "join", "join_member")


class JoiningTest(MusterTest):
    def ranks(self, *options, then="", code=0):
        """Runs ranks that join and make a communicator; `then` is what their shell does next."""
        script = self.script(
            "printf 'comm gloo 60000\\nbarrier b 60000\\naddress\\nleave 10000\\n' |"
            f" {MEMBER} env:// 60000\n{then}\n"
        )
        run = self.muster("--no-python", *options, "sh", script)
        self.assert_code(run, code)
        return run.out

    def assert_met(self, out, size, times=1):
        total = sum(range(size))
        for rank in range(size):
            for line in (f"[{rank}]: ok {rank}/{size}", f"[{rank}]: ok {total}"):
                self.assertEqual(out.splitlines().count(line), times, out)
        self.assertNotIn("error", out)

    def test_four_ranks_meet(self):
        out = self.ranks("--nproc-per-node", "4")
        self.assert_met(out, 4)
        self.assertEqual(out.count("ok 127.0.0.1"), 4)

    def test_each_attempt_meets_anew(self):
        out = self.ranks(
            "--nproc-per-node",
            "2",
            "--max-restarts",
            "2",
            then='[ "$TORCHELASTIC_RESTART_COUNT" = 2 ] || [ "$RANK" = 0 ] || exit 1',
        )
        self.assert_met(out, 2, times=3)


if __name__ == "__main__":
    harness.main()
