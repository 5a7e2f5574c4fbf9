# SPDX-License-Identifier: Apache-2.0
"""Nodes that come late, go, die, freeze or are cut off: the job grows, shrinks or waits, and no
node trains without the others."""

import os
import time

import harness
from nodes import SILENCE, SOON, NodesTest, Relay

ELASTIC = "1:2"


class Membership(NodesTest):
    def assert_alone(self, node, attempt):
        """It runs without the other, which cost nothing of the budget."""
        env = node.wait_for_workers(attempt=attempt)[0]
        self.assertEqual(env["WORLD_SIZE"], "1")
        self.assertEqual(env["TORCHELASTIC_RESTART_COUNT"], "0")

    def assert_together(self, *members, attempt):
        """All run in this attempt, with the same world and no charge to the budget."""
        on = [node.wait_for_workers(attempt=attempt)[0] for node in members]
        self.assertEqual({env["WORLD_SIZE"] for env in on}, {str(len(members))})
        self.assertEqual([int(env["RANK"]) for env in on], list(range(len(members))))
        self.assertEqual({env["TORCHELASTIC_RESTART_COUNT"] for env in on}, {"0"})
        self.assertEqual(len({(env["MASTER_ADDR"], env["MASTER_PORT"]) for env in on}), 1)

    # -- more than are needed ---------------------------------------------------------------------

    def test_a_spare_node_waits_and_goes_home(self):
        a, b = self.running_pair()
        c = self.agent("c")
        c.run.wait_for_message("spare")
        a.wait_for_event("node_joined", spare=True)
        self.finish()
        self.wait_for_end([a, b, c], 0)
        self.assertEqual(c.seen(), {})
        self.assertEqual(c.summary["outcome"], "succeeded")

    def test_a_spare_takes_the_place_of_a_lost_node(self):
        a, b = self.running_pair()
        c = self.agent("c")
        c.run.wait_for_message("spare")
        b.kill()
        self.assert_together(a, c, attempt=1)
        self.finish_all(a, c)

    def test_a_dying_spare_disturbs_nobody(self):
        a, b = self.running_pair()
        c = self.agent("c")
        c.run.wait_for_message("spare")
        c.kill()
        a.wait_for_event("node_lost", node=-1)
        self.finish_all(a, b)
        self.assertEqual(len(a.events("attempt_started")), 1)

    # -- late -------------------------------------------------------------------------------------

    def test_a_late_node_makes_the_job_grow(self):
        a = self.agent("a", nnodes=ELASTIC)
        self.assert_alone(a, attempt=0)
        b = self.agent("b", nnodes=ELASTIC)
        self.assert_together(a, b, attempt=1)
        # What ran before is still there to be read.
        self.assertTrue(os.path.isdir(os.path.join(a.run_folder, "attempt_0")))
        self.finish_all(a, b)
        self.assertEqual(a.summary["restarts"]["used"], 0)

    def test_growing_may_be_put_off(self):
        a = self.agent("a", "--grow-every", "4", nnodes=ELASTIC)
        self.assert_alone(a, attempt=0)
        b = self.agent("b", "--grow-every", "4", nnodes=ELASTIC)
        self.assert_together(a, b, attempt=1)
        a.wait_for_event("attempt_started", attempt=1)  # its worker may be seen sooner than the file
        first, second = a.events("attempt_started")
        self.assertGreater(second["mono_us"] - first["mono_us"], 3_500_000)
        self.finish_all(a, b)

    # -- lost -------------------------------------------------------------------------------------

    def test_a_killed_node_is_missed_at_once(self):
        """Whichever of its processes is killed."""
        for what in ("both", "front", "supervisor"):
            with self.subTest(killed=what):
                self.fresh()
                a, b = self.running_pair(nnodes=ELASTIC)
                before = time.monotonic()
                b.kill(what)
                lost = a.wait_for_event("node_lost", seconds=SILENCE)
                self.assertLess(time.monotonic() - before, SILENCE)
                self.assertIn(lost["how"], ("closed", "left"))
                self.assertEqual((lost["host"], lost["node"]), (self.host_name("b"), 1))
                self.assert_alone(a, attempt=1)
                b.wait_for_no_workers()
                b.run.wait()
                self.finish_all(a)

    def test_a_node_is_left_out_for_a_kind_of_failure(self):
        policy = ("--failure-policy", "exit_code=stop-and-exclude-node")
        a, b = self.running_pair(*policy, nnodes=ELASTIC)
        self.tell(b, "exit 7")
        self.assert_alone(a, attempt=1)
        self.wait_for_end([b], 7)
        lost = a.wait_for_event("node_lost", how="excluded")
        self.assertEqual((lost["host"], lost["node"]), (self.host_name("b"), 1))
        text = f"{self.host_name('b')} is excluded from this job: rank 1, exit_code in attempt 0"
        self.assertIn(text, a.run.err)
        self.assertIn(text, b.run.err)
        self.assertIn("the job goes on without this node", b.run.err)
        if self.host_name("a") != self.host_name("b"):
            again = self.agent("again", *policy, nnodes=ELASTIC, prefix=self.as_host("b"))
            self.wait_for_end([again], 1)
            self.assertIn(text, again.run.err)
        self.finish_all(a)
        self.assertEqual(a.summary["restarts"]["used"], 0)

    def test_a_fixed_job_waits_for_a_replacement(self):
        a, b = self.running_pair()
        b.kill()
        a.wait_for_no_workers()
        a.run.wait_for_message("1 of 2 nodes")
        c = self.agent("c")
        self.assert_together(a, c, attempt=1)
        self.finish_all(a, c)
        self.assertEqual(a.summary["restarts"]["used"], 0)

    def test_a_replacement_that_does_not_come_ends_the_job(self):
        a, b = self.running_pair(conf={"join_timeout": 3})
        b.kill()
        a.wait_for_no_workers()
        self.wait_for_end([a], 1)
        self.assertEqual(a.summary["outcome"], "failed")
        self.assertRegex(a.run.err, "(?i)replace|1 of 2 nodes")
        self.assertIn(self.host_name("b"), a.run.err)

    def test_below_the_least_an_elastic_job_waits_as_well(self):
        a = self.agent("a", nnodes="2:3")
        self.wait_for_host(a)
        b = self.agent("b", nnodes="2:3")
        for node in (a, b):
            node.wait_for_workers()
        b.kill()
        a.wait_for_no_workers()
        c = self.agent("c", nnodes="2:3")
        self.assert_together(a, c, attempt=1)
        self.finish_all(a, c)

    def test_a_killed_node_of_an_elastic_job_is_replaced(self):
        a, b = self.running_pair(nnodes=ELASTIC)
        b.kill()
        self.assert_alone(a, attempt=1)
        c = self.agent("c", nnodes=ELASTIC)
        self.assert_together(a, c, attempt=2)
        self.finish_all(a, c)

    def test_who_stays_keeps_its_place(self):
        a = self.agent("a", nnodes="2:3")
        self.wait_for_host(a)
        others = []
        for number, name in enumerate("bc"):
            others.append(self.agent(name, nnodes="2:3"))
            self.wait_until_joined(a, number + 2)
        b, c = others
        self.assert_together(a, b, c, attempt=0)
        b.kill()
        self.assert_together(a, c, attempt=1)
        d = self.agent("d", nnodes="2:3")
        self.assert_together(a, c, d, attempt=2)
        self.finish_all(a, c, d)

    def wait_until_joined(self, host, count):
        harness.wait_until(
            lambda: len(host.events("node_joined")) == count, f"{count} joined", SOON
        )

    def test_a_killed_host_ends_the_job(self):
        a, b = self.running_pair(nnodes=ELASTIC)
        a.kill()
        before = time.monotonic()
        self.wait_for_end([b], 1)
        self.assertLess(time.monotonic() - before, SOON)
        b.wait_for_no_workers(0)
        self.assertEqual(b.summary["outcome"], "failed")
        self.assertEqual([line[4] for line in self.signals() if line[1] == "b"], [15])

    def test_a_killed_host_ends_those_that_wait(self):
        a = self.agent("a", nnodes=3)
        self.wait_for_host(a)
        b = self.agent("b", nnodes=3, conf={"join_timeout": 4})
        b.run.wait_for_message("2 of 3 nodes")
        a.kill()
        self.wait_for_end([b], 1)

    # -- frozen -----------------------------------------------------------------------------------

    def test_a_frozen_node_is_given_up_and_learns_it(self):
        a, b = self.running_pair(nnodes=ELASTIC)
        before = time.monotonic()
        b.freeze()
        lost = a.wait_for_event("node_lost")
        self.assertEqual(lost["how"], "silent")
        self.assertGreater(time.monotonic() - before, SILENCE - 1.5)
        self.assert_alone(a, attempt=1)
        old = {env["PID"] for env in b.living().values()}
        b.thaw()
        harness.wait_until(
            lambda: not old & {env["PID"] for env in b.living().values()},
            "its workers of the old attempt are gone",
            SOON,
        )
        self.assert_together(a, b, attempt=2)
        self.finish_all(a, b)

    def test_a_short_pause_is_forgiven(self):
        a, b = self.running_pair(nnodes=ELASTIC)
        b.freeze()
        time.sleep(1)  # a third of what is too long
        b.thaw()
        time.sleep(SILENCE)
        self.assertEqual(a.events("node_lost"), [])
        self.finish_all(a, b)
        self.assertEqual(len(a.events("attempt_started")), 1)

    def test_a_frozen_host_ends_the_others(self):
        a, b = self.running_pair()
        a.freeze()
        b.wait_for_no_workers()
        self.wait_for_end([b], 1)
        a.thaw()
        # Alone it may not train: it waits for a second node, which its workers must not outlive.
        a.wait_for_no_workers()
        a.signal(15)
        self.wait_for_end([a], 143)

    # -- cut off ----------------------------------------------------------------------------------

    def relayed_pair(self, **rest):
        """Two running nodes; b reaches a through a relay."""
        a = self.agent("a", conf={"is_host": "true", "last_call_timeout": 3}, **rest)
        self.wait_for_host(a)
        relay = Relay(("127.0.0.1", self.port))
        self.addCleanup(relay.__exit__)
        conf = {"is_host": "false", "last_call_timeout": 3}
        b = self.agent("b", endpoint=f"127.0.0.1:{relay.port}", conf=conf, **rest)
        for node in (a, b):
            node.wait_for_workers()
        return a, b, relay

    def test_a_cut_connection_costs_a_fresh_start_at_most(self):
        """A closed connection cannot be told from a dead node, so it is one at first."""
        a, b, relay = self.relayed_pair(nnodes=ELASTIC)
        relay.cut()
        self.assert_reunited(a, b)
        self.finish_all(a, b)
        self.assertEqual(a.summary["restarts"]["used"], 0)

    def assert_cut_off(self, *directions):
        """b stops by itself, in time. Healed at once, they are together again; else each side has
        an end: a goes on alone and b gives up."""
        a, b, relay = self.relayed_pair(nnodes=ELASTIC)
        relay.hold(*directions)
        b.wait_for_no_workers()
        relay.hold()
        self.assert_reunited(a, b)
        relay.hold(*directions)
        self.wait_for_end([b], 1)
        b.wait_for_no_workers(0)
        a.wait_for_workers(WORLD_SIZE=1)
        self.finish_all(a)
        self.assertEqual(a.summary["restarts"]["used"], 0)

    def test_silence_from_both_sides(self):
        self.assert_cut_off(Relay.UP, Relay.DOWN)

    def test_silence_from_the_node(self):
        self.assert_cut_off(Relay.UP)

    def test_silence_from_the_host(self):
        self.assert_cut_off(Relay.DOWN)

    # -- leaving ----------------------------------------------------------------------------------

    def test_a_node_may_leave_while_the_job_goes_on(self):
        a, b = self.running_pair("--on-node-signal", "leave", nnodes=ELASTIC)
        b.signal(15)
        self.wait_for_end([b], 143)
        self.assertEqual(a.wait_for_event("node_lost")["how"], "left")
        self.assert_alone(a, attempt=1)
        self.finish_all(a)


if __name__ == "__main__":
    harness.main()
