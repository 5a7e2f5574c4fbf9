# SPDX-License-Identifier: Apache-2.0
"""That the tests of several nodes can see what they look for: relay, store client, network hosts,
and the workers' report of two worlds at once."""

import socket
import subprocess
import time
import unittest

import harness
import invariants
import nodes
from harness import wait_until
from netns import NetnsTest
from nodes import NodesTest, Relay, StorePeek


class Parts(NodesTest):
    def echo_through(self, relay, text):
        with socket.create_connection(("127.0.0.1", relay.port), 5) as client:
            client.settimeout(0.3)
            client.sendall(text)
            try:
                return client.recv(100)
            except TimeoutError:
                return None

    def echo_server(self):
        words = [
            "/usr/bin/python3",
            "-c",
            "import socketserver as s\n"
            "class H(s.BaseRequestHandler):\n"
            " def handle(self):\n"
            "  try:\n"
            "   while d := self.request.recv(100): self.request.sendall(d)\n"
            "  except OSError: pass\n"
            "t = s.ThreadingTCPServer(('127.0.0.1', 0), H); t.daemon_threads = True\n"
            "print(t.server_address[1], flush=True); t.serve_forever()",
        ]
        server = subprocess.Popen(words, stdout=subprocess.PIPE, env=self.environment())
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        return int(server.stdout.readline())

    def test_the_relay_carries_holds_and_delays(self):
        with Relay(("127.0.0.1", self.echo_server())) as relay:
            self.assertEqual(self.echo_through(relay, b"one"), b"one")
            for direction in (Relay.UP, Relay.DOWN):
                relay.hold(direction)
                self.assertIsNone(self.echo_through(relay, b"two"))
            relay.hold()
            self.assertEqual(self.echo_through(relay, b"three"), b"three")
            relay.delay = 0.1
            before = time.monotonic()
            self.assertEqual(self.echo_through(relay, b"four"), b"four")
            self.assertGreater(time.monotonic() - before, 0.2)
            relay.delay = 0
            with socket.create_connection(("127.0.0.1", relay.port), 5) as client:
                client.sendall(b"five")
                self.assertEqual(client.recv(100), b"five")
                relay.cut()
                self.assertEqual(client.recv(100), b"")

    def test_the_store_client_reads_what_it_wrote(self):
        words = ("--nnodes", 1, "--master-port", self.port, "--log-dir", self.path("logs.a"))
        run = self.start(*words, "--no-python", nodes.WORKER, env={"NODE": "a"})
        a = nodes.Node(self, "a", run)
        a.wait_for_workers()
        with StorePeek(self.port) as store:
            self.assertFalse(store.has("key"))
            store.set("key", "value")
            self.assertTrue(store.has("key"))
            self.assertEqual(store.get("key"), "value")
            self.assertFalse(store.closed())
            self.finish()
            self.assert_code(a.run.wait(), 0)
            wait_until(store.closed, "the end of the store is seen")

    def test_workers_of_two_attempts_tell_on_each_other(self):
        workers = []
        for attempt in (0, 0, 1):
            env = {
                "NODE": "x",
                "RANK": "0",
                "LOCAL_RANK": "0",
                "TORCHELASTIC_ERROR_FILE": f"/logs/attempt_{attempt}/0/error.json",
            }
            workers.append(subprocess.Popen([nodes.WORKER], env=self.environment(**env)))
            wait_until(lambda: len(self.seen()) == len(workers), "the worker runs")
        self.finish()
        for worker in workers:
            self.assertEqual(worker.wait(), 0)
        [violation] = self.violations()
        self.assertIn("1.x beside 0.x", violation)
        self.frozen_nodes.add("x")
        self.assertEqual(self.violations(), [])

    def seen(self):
        return nodes.Node(self, "x", None).seen()


def story(node, attempts, **changes):
    """What a node of a two-node job records: one worker a node, each attempt a second long."""
    events = [{"event": "job_started", "max_restarts": 1}]
    for attempt in range(attempts):
        nodes = [{"node": place, "first_rank": place, "workers": 1} for place in (0, 1)]
        start = {
            "event": "attempt_started",
            "attempt": attempt,
            "restart_count": attempt,
            "node": node,
            "node_count": 2,
            "world_size": 2,
            "master_addr": "a",
            "master_port": 1,
            "nodes": nodes if node == 0 else nodes[1:],
        }
        pid = 10 * attempt + node
        spawn = {"event": "worker_spawned", "attempt": attempt, "rank": node, "pid": pid}
        failure = {
            "event": "failure_found",
            "attempt": attempt,
            "rank": 1,
            "host": "b",
            "pid": pid,
            "kind": "exit_code",
            "exit_code": 1,
        }
        failure["pid"] = 1
        end = {"event": "worker_exited", "attempt": attempt, "rank": node, "pid": pid}
        events += [start, spawn, end, failure]
    for number, event in enumerate(events):
        event["seq"] = number
        second = event.get("attempt", 0) * 2 + (event["event"] != "attempt_started")
        event["time"] = f"2026-01-01T00:00:{second:02}.000000Z"
    return events


class Promises(unittest.TestCase):
    """invariants.py finds each kind of broken promise."""

    def broken(self, change):
        records = {"a": story(0, 2), "b": story(1, 2)}
        change(records)
        return " ".join(invariants.check(records))

    def test_a_good_story_breaks_none(self):
        self.assertEqual(self.broken(lambda records: None), "")

    def test_each_breach_is_found(self):
        def second_start(records, name):
            return [e for e in records[name] if e["event"] == "attempt_started"][1]

        def put(target, **values):
            target.update(values)

        def late_end(records):
            put(records["b"][3], time="2026-01-01T00:00:02.500000Z")

        breaches = {
            "has seq": lambda r: put(r["a"][2], seq=7),
            "in the order": lambda r: put(second_start(r, "a"), attempt=0),
            "master_addr differs": lambda r: put(second_start(r, "b"), master_addr="x"),
            "restart_count differs": lambda r: put(second_start(r, "b"), restart_count=0),
            "two nodes have one place": lambda r: [
                put(e, node=0, nodes=[{"node": 0, "first_rank": 1, "workers": 1}])
                for e in [second_start(r, "b")]
            ],
            "ranks \\[0, 0\\]": lambda r: put(
                second_start(r, "b"), nodes=[{"node": 1, "first_rank": 0, "workers": 1}]
            ),
            "all nodes are here": lambda r: [
                put(second_start(r, name), world_size=3) for name in ("a", "b")
            ],
            "have gaps": lambda r: put(
                second_start(r, "a"),
                nodes=[
                    {"node": 0, "first_rank": 0, "workers": 1},
                    {"node": 1, "first_rank": 2, "workers": 1},
                ],
            ),
            "several culprits": lambda r: put(r["a"][4], rank=0),
            "restart_count 0 -> 1 with 0": lambda r: [
                put(r[name][4], event="other") for name in ("a", "b")
            ],
            "restart_count 1 of 0": lambda r: [put(r[name][0], max_restarts=0) for name in "ab"],
            "before the end of attempt 0 on b": late_end,
        }
        for text, change in breaches.items():
            with self.subTest(text):
                self.assertRegex(self.broken(change), text)


class Network(NetnsTest):
    def connects(self, source, target, port=5):
        """Whether a TCP connection from one host to another comes about."""
        script = (
            "import socket, sys\n"
            "try: socket.create_connection((sys.argv[1], int(sys.argv[2])), 0.5)\n"
            "except ConnectionRefusedError: print('yes')\n"  # an answer as well
            "except OSError: print('no')"
        )
        words = ("/usr/bin/python3", "-c", script, target, str(port))
        return "yes" in self.hosts[source].run(*words)

    def test_hosts_reach_each_other_until_they_are_cut(self):
        self.assertTrue(self.connects("a", "node-b"))
        self.assertTrue(self.connects("a", "fd77::2"))
        self.assertTrue(self.connects("a", self.hosts["b"].link_local + "%e0"))
        for cut in (self.hosts["b"].deaf, self.hosts["b"].mute):
            cut()
            self.assertFalse(self.connects("a", "node-b"))
            self.assertTrue(self.connects("a", "node-c"))
            self.hosts["b"].heal()
            self.assertTrue(self.connects("a", "node-b"))

    def test_a_host_has_its_own_name_and_names(self):
        words = [*self.hosts["b"].command(), "sh", "-c", "hostname; getent ahostsv4 node-c"]
        text = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertEqual(text.split()[:2], ["b", "10.77.0.3"])


if __name__ == "__main__":
    harness.main()
