# SPDX-License-Identifier: Apache-2.0
"""The nodes of a job fail, restart, stop and end together, and tell the same story."""

import json
import os
import signal
import socket
import time

import harness
from harness import wait_until
from nodes import SOON, NodesTest, StorePeek


class Failures(NodesTest):
    def test_a_failure_stops_and_restarts_every_node(self):
        for culprit, other in (("a", "b"), ("b", "a")):
            with self.subTest(culprit=culprit):
                self.fresh()
                job = self.running_pair("--max-restarts", 1, workers=2)
                self.tell(culprit, "exit 9", local_rank=1)
                for node in job:
                    node.wait_for_workers(2, attempt=1, TORCHELASTIC_RESTART_COUNT=1)
                stopped = [line[4] for line in self.signals() if line[1] == other]
                self.assertEqual(stopped, [15, 15])
                self.finish()
                self.wait_for_end(job, 0)
                for node in job:
                    self.assertEqual(node.summary["restarts"], {"used": 1, "max": 1})
                    [failure] = node.summary["earlier_failures"]
                    self.assertEqual(failure["host"], self.host_name(culprit))

    def test_the_command_for_failures_runs_once_for_all_nodes(self):
        hook = f'cat >>{self.path("told")}.$NODE'
        job = self.running_pair("--on-failure", hook)
        self.tell("b", "exit 9")
        self.wait_for_end(job, 9)
        verdict = json.loads(self.file("told.a"))
        self.assertEqual(verdict["failure"]["host"], self.host_name("b"))
        self.assertEqual(verdict["no_restart"], "no restart was allowed (--max-restarts 0)")
        self.assertEqual([group["ranks"] for group in verdict["victims"]], ["0"])
        self.assertFalse(os.path.exists(self.path("told.b")))

    def test_the_other_node_hears_of_a_failure_at_once(self):
        a, b = self.running_pair()
        self.tell(b, "exit 1")
        self.wait_for_end([a, b], 1)
        died = b.wait_for_event("worker_exited")["time"]
        sent = a.wait_for_event("signal_sent")["time"]
        self.assertLess(seconds_between(died, sent), 1.0)  # bench/rendezvous measures it

    def test_a_budget_used_up_ends_every_node_with_the_same_report(self):
        a, b = self.pair("--max-restarts", 1)
        for count in (0, 1):
            for node in (a, b):
                node.wait_for_workers(attempt=count, TORCHELASTIC_RESTART_COUNT=count)
            self.tell(b, f"exit {5 + count}")
        self.wait_for_end([a, b], 6)
        self.assert_same_cause([a, b], host="b", rank=1)
        for node in (a, b):
            self.assertEqual(node.summary["restarts"], {"used": 1, "max": 1})
            self.assertIn(f"rank 1 (local 0) on {self.host_name('b')} failed", node.run.err)
        reports = [self.report(node) for node in (a, b)]
        self.assertEqual(*reports)

    def report(self, node):
        """The part of the console that is the final report, but for what is each node's own."""
        lines = node.run.err.splitlines()
        first = max(number for number, line in enumerate(lines) if " failed after " in line)
        own = ("run folder", "page", "logs", "nothing left")
        return [line for line in lines[first:] if not line.strip().startswith(own)]

    def test_a_signal_death_gives_every_node_its_code(self):
        a, b = self.running_pair()
        self.tell(a, "kill 9")
        self.wait_for_end([a, b], 137)
        self.assert_same_cause([a, b], host="a", rank=0)

    def test_the_first_of_two_failures_is_the_cause_everywhere(self):
        a, b = self.running_pair(workers=2)
        self.tell(b, "deaf", 0)
        self.tell(b, "deaf", 1)
        time.sleep(0.2)
        self.tell(a, "exit 21", 1)
        a.wait_for_event("worker_exited")
        self.tell(b, "exit 22", 0)
        self.tell(b, "exit 0", 1)
        self.wait_for_end([a, b], 21)
        self.assert_same_cause([a, b], host="a", rank=1)

    def test_who_fell_with_it_is_a_victim(self):
        a, b = self.running_pair(workers=2)
        self.tell(b, "exit 3")
        self.wait_for_end([a, b], 3)
        for node in (a, b):
            self.assertRegex(node.run.err, r"victims +ranks 0-1, ?3 ")
            self.assertEqual(node.summary["other_causes"], [])

    def test_a_program_that_cannot_run_on_one_node_is_the_jobs_failure(self):
        a = self.agent("a")
        self.wait_for_host(a)
        with open(self.script("", "garbage"), "wb") as file:
            file.write(b"\x7fELF and nothing more")
        b = self.agent("b", worker=(self.path("garbage"),))
        self.wait_for_end([a, b], 126)
        self.assert_same_cause([a, b], host="b", rank=1)

    def test_a_program_that_is_missing_on_one_node_keeps_that_node_out(self):
        a = self.agent("a")
        self.wait_for_host(a)
        b = self.agent("b", worker=("/nowhere/program",))
        self.assertEqual(b.run.wait().code, 127)
        self.assertIn("/nowhere/program", b.run.err)
        c = self.agent("c")
        for node in (a, c):
            node.wait_for_workers()
        self.finish_all(a, c)

    def test_a_failure_of_one_node_in_the_middle_of_a_stop_is_not_charged_twice(self):
        a, b = self.running_pair("--max-restarts", 1)
        self.tell(a, "deaf")
        time.sleep(0.2)
        self.tell(b, "exit 1")
        wait_until(lambda: a.events("signal_sent"), "a's worker is being stopped", SOON)
        self.tell(a, "exit 1")
        for node in (a, b):
            node.wait_for_workers(attempt=1, TORCHELASTIC_RESTART_COUNT=1)
        self.finish_all(a, b)


class Stops(NodesTest):
    def test_a_stop_signal_at_any_node_stops_the_job(self):
        for number, who in ((15, "a"), (15, "b"), (2, "b")):
            with self.subTest(signal=number, node=who):
                self.fresh()
                self.running_pair()
                self.nodes[who].signal(number)
                self.wait_for_end(self.nodes.values(), 128 + number)
                heard = sorted((line[1], line[4]) for line in self.signals())
                self.assertEqual(heard, [("a", number), ("b", number)])
                for node in self.nodes.values():
                    self.assertEqual(node.summary["outcome"], "stopped")
                    self.assertEqual(node.summary["stop"]["signal"], signal.Signals(number).name)

    def test_scripts_can_read_that_a_stop_was_requested(self):
        a, b = self.running_pair("--shutdown-timeout", 30)
        self.tell("all", "deaf")
        time.sleep(0.2)
        with StorePeek(self.port) as store:
            self.assertFalse(store.has("muster/stop_requested"))
            b.signal(15)
            wait_until(lambda: store.has("muster/stop_requested"), "the key is there", SOON)
            self.assertIn("TERM", store.get("muster/stop_requested"))
        self.finish()
        self.wait_for_end([a, b], 143)

    def test_a_second_interrupt_kills_on_every_node(self):
        a, b = self.running_pair("--shutdown-timeout", 600)
        self.tell("all", "deaf")
        time.sleep(0.2)
        b.signal(signal.SIGINT)
        a.run.wait_for_message("stop")
        b.signal(signal.SIGINT)
        self.wait_for_end([a, b], 130)

    def test_a_stop_while_a_restart_waits_for_nodes(self):
        a, b = self.running_pair()
        b.kill()
        a.run.wait_for_message("1 of 2 nodes")
        a.signal(15)
        self.wait_for_end([a], 143)

    def test_a_stop_reaches_a_spare_too(self):
        a, b = self.running_pair()
        c = self.agent("c")
        c.run.wait_for_message("spare")
        a.signal(15)
        self.wait_for_end([a, b], 143)
        self.assertIn(c.run.wait(SOON).code, (0, 143), c.story())


class Ends(NodesTest):
    def half_done(self, *options):
        """a's worker has finished, b's runs on."""
        a, b = self.running_pair(*options)
        self.tell(a, "exit 0")
        a.wait_for_event("worker_exited")
        return a, b

    def test_who_is_done_waits_for_the_others(self):
        a, b = self.half_done()
        time.sleep(1)
        self.assertIsNone(a.run.process.poll(), "it is the store's host")
        with StorePeek(self.port) as store:
            self.assertFalse(store.has("anything"))
        self.tell(b, "exit 0")
        self.wait_for_end([a, b], 0)

    def test_who_is_done_waits_also_if_it_is_not_the_host(self):
        a, b = self.running_pair()
        self.tell(b, "exit 0")
        b.wait_for_event("worker_exited")
        time.sleep(1)
        self.assertIsNone(b.run.process.poll())
        self.tell(a, "exit 0")
        self.wait_for_end([a, b], 0)

    def test_a_late_failure_fails_every_node(self):
        a, b = self.half_done()
        self.tell(b, "exit 17")
        self.wait_for_end([a, b], 17)
        self.assert_same_cause([a, b], host="b", rank=1)

    def test_a_late_failure_restarts_every_node(self):
        a, b = self.half_done("--max-restarts", 1)
        self.tell(b, "exit 17")
        for node in (a, b):
            node.wait_for_workers(attempt=1)
        self.finish_all(a, b)

    def test_a_signal_at_who_waits_is_acted_on_at_once(self):
        a, b = self.half_done()
        before = time.monotonic()
        a.signal(15)
        self.wait_for_end([a, b], 143)
        self.assertLess(time.monotonic() - before, SOON)

    def test_a_node_lost_while_the_other_is_done(self):
        """What was not finished has to be done again: a waits for a replacement."""
        a, b = self.half_done()
        b.kill()
        a.wait_for_event("node_lost")
        c = self.agent("c")
        for node in (a, c):
            node.wait_for_workers(attempt=1)
        self.finish_all(a, c)

    def test_the_barrier_may_have_a_limit(self):
        a, b = self.running_pair("--exit-barrier-timeout", 1)
        self.tell(b, "exit 0")
        self.wait_for_end([b], 0)
        self.assertIsNone(a.run.process.poll(), "the host always waits")
        self.tell(a, "exit 0")
        self.wait_for_end([a], 0)

    def test_who_is_awaited_is_said(self):
        a, b = self.half_done()
        wait_until(lambda: self.host_name("b") in a.run.err, "it names whom it waits for", SOON)
        self.tell(b, "exit 0")
        self.wait_for_end([a, b], 0)

    def test_the_port_is_free_afterwards(self):
        a, b = self.pair()
        self.finish_all(a, b)
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", self.port), 5)


def seconds_between(first, second):
    """Of two times as they stand in events.jsonl."""
    return unix(second) - unix(first)


def unix(text):
    whole, _, fraction = text.rstrip("Z").partition(".")
    parsed = time.strptime(whole, "%Y-%m-%dT%H:%M:%S")
    return time.mktime(parsed) + float("0." + (fraction or "0"))


if __name__ == "__main__":
    harness.main()
