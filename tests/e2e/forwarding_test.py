# SPDX-License-Identifier: Apache-2.0
"""Two hosts of which only the coordinator's port can be reached: its page has both nodes' logs, and
nobody who reads them, however slowly, disturbs the job."""

import contextlib
import ctypes
import glob
import http.client
import json
import os
import re
import signal
import socket
import time
import unittest
import urllib.parse

import harness
from harness import read, wait_until
from netns import NetnsTest
from nodes import SILENCE, SOON

CLONE_NEWNET = 0x40000000
GIBIBYTE = 1 << 30

# Writes as the test wants it: $DO/RANK has how many lines there shall be; "end" ends it.
WORKER = r"""
import os, sys, time
rank, folder = os.environ["RANK"], os.environ["DO"]
line = 0
while True:
    try:
        order = open(os.path.join(folder, rank)).read().split()
    except FileNotFoundError:
        order = ["3"]
    if order and order[0] == "end":
        break
    while order and line < int(order[0]):
        block = []
        while line < int(order[0]) and len(block) < 10000:
            block.append("rank %s line %010d %s\n" % (rank, line, "x" * 70))
            line += 1
        sys.stdout.write("".join(block))
        sys.stdout.flush()
    time.sleep(0.01)
"""
LINE = len("rank 0 line 0000000000 ") + 70 + 1


@contextlib.contextmanager
def network_of(host):
    """Sockets that are made in it belong to the host's network, for as long as they live."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/self/ns/net") as home, open(f"/run/netns/{host.namespace}") as there:
        if libc.setns(there.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
        try:
            yield
        finally:
            libc.setns(home.fileno(), CLONE_NEWNET)


class Connection(http.client.HTTPConnection):
    """To a page that listens on a host's loopback."""

    def __init__(self, host, port, receive_buffer=None):
        super().__init__("127.0.0.1", port, timeout=SOON)
        self.of = host
        self.receive_buffer = receive_buffer

    def connect(self):
        with network_of(self.of):
            self.sock = socket.socket()
        if self.receive_buffer:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.receive_buffer)
        self.sock.settimeout(self.timeout)
        self.sock.connect((self.host, self.port))


class Page:
    """The HTTP side of one node."""

    def __init__(self, test, node):
        self.host = test.hosts[node.name[0]]
        url = wait_until(lambda: self.find(node), f"{node.name} has a page", SOON)
        self.port = urllib.parse.urlsplit(url).port
        self.token = urllib.parse.parse_qs(urllib.parse.urlsplit(url).query)["token"][0]

    @staticmethod
    def find(node):
        folder = node.run_folder
        lines = read(os.path.join(folder, "http")).decode().split() if folder else []
        return next((line for line in lines if "token=" in line), None)

    def open(self, target, method="GET", headers=(), receive_buffer=None):
        """The connection ends with the answer."""
        return self.ask(target, method, headers, receive_buffer).getresponse()

    def ask(self, target, method="GET", headers=(), receive_buffer=None):
        connection = Connection(self.host, self.port, receive_buffer)
        own = {"Authorization": f"Bearer {self.token}", "Connection": "close"}
        connection.request(method, target, headers={**own, **dict(headers)})
        return connection

    def get(self, target, **rest):
        with self.open(target, **rest) as answer:
            return answer.status, answer.read()

    def json(self, target):
        status, body = self.get(target)
        if status != 200:
            raise AssertionError(f"{target}: {status} {body.decode(errors='replace')}")
        return json.loads(body)


def peak_kib(pid):
    return int(re.search(rb"VmHWM:\s+(\d+) kB", harness.read_proc(pid, "status")).group(1))


class Forwarding(NetnsTest):
    NAMES = "ab"

    def setUp(self):
        super().setUp()
        # Of everything that could be reached, one port is.
        self.hosts["a"].nft(f'add rule inet test input iifname "e0" tcp dport != {self.port} drop')
        self.hosts["b"].nft(f'add rule inet test input iifname "e0" tcp sport != {self.port} drop')
        with open(self.path("worker.py"), "w") as file:
            file.write(WORKER)

    def start_job(self, *options):
        job = {
            "worker": ("/usr/bin/python3", "-u", self.path("worker.py")),
            # Otherwise freed memory stays with the sanitizer, and nothing can be said of bounds.
            "env": {"DO": self.path("do"), "ASAN_OPTIONS": "quarantine_size_mb=1"},
        }
        self.a = self.agent("a", *options, **job)
        self.wait_for_host(self.a)
        self.b = self.agent("b", *options, **job)
        # Of what is redirected nobody sees the first byte.
        self.a.wait_for_event("worker_spawned" if options else "first_output", rank=1)
        self.page = Page(self, self.a)

    def write_lines(self, rank, count):
        with open(self.path("do", f"{rank}.new"), "w") as file:
            file.write(str(count))
        os.rename(self.path("do", f"{rank}.new"), self.path("do", str(rank)))

    def end(self, *nodes):
        for rank in (0, 1):
            self.write_lines(rank, "end")
        self.wait_for_end(nodes or (self.a, self.b), 0)

    def assert_nobody_lost(self):
        self.assertEqual(self.a.events("node_lost"), [])
        self.assertEqual(len(self.a.events("attempt_started")), 1)

    def lines_of(self, rank, query):
        return self.page.json(f"/api/v1/logs/0/{rank}/stdout?{query}")["lines"]

    def test_the_page_has_the_logs_of_both(self):
        self.start_job()
        for rank in (0, 1):
            wait_until(lambda: len(self.lines_of(rank, "tail=5")) == 3, "three lines are there")
            texts = [line[5] for line in self.lines_of(rank, "tail=5")]
            self.assertTrue(texts[0].startswith(f"rank {rank} line 0000000000"), texts)
        status, part = self.page.get(
            "/api/v1/logs/0/1/stdout", headers={"Range": f"bytes={LINE}-{LINE + 5}"}
        )
        self.assertEqual((status, part), (206, b"rank 1"))
        status, _ = self.page.get("/api/v1/logs/0/1/stdout", method="HEAD")
        self.assertEqual(status, 200)
        joined = self.a.events("node_joined")[-1]
        self.assertEqual(joined["log_dir"], self.b.run_folder)
        self.end()

    def test_a_log_is_followed_across_nodes(self):
        self.start_job()
        stream = self.page.open("/api/v1/follow?ranks=1&streams=stdout&tail=10")
        self.assertEqual(stream.status, 200)
        self.write_lines(1, 500)
        seen = set()
        while len(seen) < 500:
            text = stream.readline().decode()
            seen.update(re.findall(r"rank 1 line (\d{10})", text))
        stream.close()
        self.assert_nobody_lost()
        self.end()

    def test_a_follower_that_stalls_costs_the_job_nothing(self):
        self.start_job()
        stalled = [
            self.page.open(f"/api/v1/follow?ranks=1&streams=stdout&tail={n}", receive_buffer=4096)
            for n in (1, 2, 3)
        ]
        raw = self.page.open("/api/v1/logs/0/1/stdout", receive_buffer=4096)
        self.write_lines(1, 2_000_000)
        until = time.monotonic() + 3 * SILENCE
        while time.monotonic() < until:
            # Whoever does read is answered meanwhile.
            self.assertEqual(len(self.lines_of(1, "tail=1")), 1)
        self.assert_nobody_lost()
        # One of them goes on where it was, and sees the end.
        wait_until(
            lambda: b"0001999999" in self.page.get("/api/v1/logs/0/1/stdout?tail=1")[1],
            "all is written",
        )
        last = ""
        while "line 0001999999" not in last:
            last = stalled[0].readline().decode()
            self.assertTrue(last, "the stream ended")
        for stream in (*stalled, raw):
            stream.close()
        self.end()

    def test_a_gibibyte_comes_whole_with_little_memory(self):
        self.start_job("--redirects", "3")
        count = GIBIBYTE // LINE
        self.write_lines(1, count)
        [log] = glob.glob(os.path.join(self.b.run_folder, "attempt_0", "*", "stdout.log"))
        wait_until(lambda: os.path.getsize(log) == count * LINE, "the log is written", 120)
        before = {node: peak_kib(node.supervisor) for node in (self.a, self.b)}
        answer = self.page.open("/api/v1/logs/0/1/stdout")
        got = 0
        while piece := answer.read(1 << 20):
            if got % LINE == 0:
                expected = f"rank 1 line {got // LINE:010d} ".encode()
                self.assertTrue(piece.startswith(expected), piece[:80])
            got += len(piece)
        self.assertEqual(got, count * LINE)
        for node, peak in before.items():
            grown = peak_kib(node.supervisor) - peak
            self.assertLess(grown, 32 << 10, f"KiB more at {node.name}")
        self.assert_nobody_lost()
        self.end()

    def test_many_readers_over_a_narrow_network(self):
        """What they ask for takes longer than a silent peer is given, all in all."""
        self.start_job("--redirects", "3")
        self.write_lines(1, 100_000)
        wait_until(
            lambda: b"0000099999" in self.page.get("/api/v1/logs/0/1/stdout?tail=1")[1], "all"
        )
        try:
            self.hosts["b"].run(
                *("tc", "qdisc", "add", "dev", "e0", "root"),
                *("tbf", "rate", "4mbit", "burst", "256kbit", "latency", "400ms"),
            )
        except RuntimeError as error:
            self.skipTest(f"no narrow network here: {error}")
        asked = [self.page.ask("/api/v1/logs/0/1/stdout") for _ in range(16)]  # at once
        readers = [connection.getresponse() for connection in asked]
        got = [0] * len(readers)
        until = time.monotonic() + 4 * SILENCE
        while time.monotonic() < until:
            for i, reader in enumerate(readers):
                got[i] += len(reader.read(4096))
        self.assertGreater(min(got), 0)
        self.assert_nobody_lost()
        self.assertNotIn("lost the connection", self.b.run.err)
        for reader in readers:
            reader.close()
        self.hosts["b"].run("tc", "qdisc", "del", "dev", "e0", "root")
        self.end()

    def test_a_node_that_dies_in_the_middle(self):
        self.start_job("--redirects", "3")
        self.write_lines(1, 1_000_000)
        wait_until(
            lambda: b"0000999999" in self.page.get("/api/v1/logs/0/1/stdout?tail=1")[1], "all"
        )
        answer = self.page.open("/api/v1/logs/0/1/stdout", receive_buffer=4096)
        self.assertTrue(answer.read(1000).startswith(b"rank 1 line 0000000000"))
        self.b.kill()
        with self.assertRaises((http.client.IncompleteRead, ConnectionError)):
            answer.read()
        self.a.wait_for_event("node_lost")
        status, body = self.page.get("/api/v1/logs/0/1/stdout?tail=1")
        self.assertIn(status, (404, 502, 503), body)
        self.assertIn(self.b.run_folder, body.decode())
        self.a.signal(signal.SIGTERM)
        self.a.run.wait()

    def test_a_restart_is_asked_for_at_the_other_node(self):
        self.start_job()
        page_of_b = Page(self, self.b)
        answer = page_of_b.open("/api/v1/restart", method="POST")
        self.assertEqual(answer.status, 200, answer.read())
        for node in (self.a, self.b):
            node.wait_for_event("attempt_started", attempt=1)
        asked = self.a.events("restart_requested")[-1]
        self.assertEqual((asked["attempt"], asked["host"]), (0, "b"))
        self.assertTrue(asked["who"])
        self.assertIn("restarting: asked for by", self.b.run.err)
        self.a.wait_for_event("worker_spawned", attempt=1, rank=1)
        self.end()
        self.assertEqual(self.a.summary["restarts"]["used"], 0)


if __name__ == "__main__":
    unittest.main()
