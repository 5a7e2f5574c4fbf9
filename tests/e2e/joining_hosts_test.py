# SPDX-License-Identifier: Apache-2.0
"""C++ ranks on several hosts: each is told to the others by an address that they can reach, whatever
the names on a host lead to there."""

import os

import harness
from netns import NetnsTest
from talk import Talk

MEMBER = os.path.join(os.environ["MUSTER_BUILD"], "tests", "nccl", "join", "join_member")


class JoiningHosts(NetnsTest):
    NAMES = "ab"

    def member(self, host, method, rank, size, timeout_ms=60_000):
        command = [*self.hosts[host].command(), MEMBER, method, timeout_ms, rank, size]
        return Talk(self, list(map(str, command)), env=self.environment())

    def assert_meet(self, method):
        """Ranks 0 and 2 on a, rank 1 on b."""
        members = [self.member("aba"[rank], method, rank, 3) for rank in range(3)]
        for rank, member in enumerate(members):
            self.assertEqual(member.next(), f"ok {rank}/3")
        for rank, member in enumerate(members):
            self.assertEqual(member.ask("address"), f"ok {self.hosts['aba'[rank]].address}")
        for member in members:
            member.say("comm gloo 60000")
        for member in members:
            self.assertEqual(member.next(), "ok 3")
        for member in members:
            member.say("leave 10000")
        for member in members:
            self.assertEqual(member.next(), "ok")

    def test_at_a_store(self):
        self.assert_meet("tcp://node-a:29500")

    def test_where_a_host_calls_itself_loopback(self):
        self.hosts["a"].write_hosts({"node-a": "127.0.1.1", "node-b": "10.77.0.2"})
        self.assert_meet("tcp://node-a:29500")

    def test_at_a_file(self):
        self.assert_meet("file://" + self.path("meeting"))
        self.assertFalse(os.path.exists(self.path("meeting")))

    def test_a_host_that_is_cut_off_is_named_in_time(self):
        members = [self.member("ab"[rank], "tcp://node-a:29500", rank, 2) for rank in range(2)]
        for member in members:
            self.assertTrue(member.next().startswith("ok "))
        self.hosts["b"].mute()
        for member in members:
            member.say("barrier b 1000")
        self.assertIn("[1] barrier 'b': rank 1 of 2 has not arrived", members[0].next())
        self.assertIn("error store_lost", members[1].next())
        self.assertIn("error timeout [1] leaving", members[0].ask("leave 500"))
        self.hosts["b"].heal()


if __name__ == "__main__":
    harness.main()
