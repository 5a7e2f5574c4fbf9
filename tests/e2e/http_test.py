# SPDX-License-Identifier: Apache-2.0
"""Hostile and clumsy HTTP clients against a real job: it does not notice, and its exit code is right."""

import os
import random
import re
import select
import socket
import time

import harness
from api import Api
from harness import MusterTest, wait_until

# Prints its line numbers until the file that it is told of is there, then exits with what that says.
WORKER = """
import os, sys, time
line = 0
while not os.path.exists(sys.argv[1]):
    print("line", line, flush=True)
    line += 1
    time.sleep(0.01)
sys.exit(int(open(sys.argv[1]).read()))
"""

LARGE_LINES = 400_000

# What two readers could take for different requests. Each gets an answer that ends the connection,
# and nothing behind it is taken for a request.
SMUGGLING = [
    "POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{inner}",
    "POST / HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n{inner}",
    "POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\nContent-Length: 50\r\n\r\n{inner}",
    "POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: +0\r\n\r\n{inner}",
    "POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length : 0\r\n\r\n{inner}",
    "POST / HTTP/1.1\r\nHost: {host}\r\n Content-Length: 50\r\n\r\n{inner}",
    "POST / HTTP/1.1\r\nHost: {host}\r\nX: y\n\n{inner}",
    "POST / HTTP/1.1\r\nHost: {host}\r\nX: y\r\r{inner}",
    "POST / HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n{inner}",
    "POST / HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n0\n\r\n{inner}",
    "POST / HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcX\r\n0\r\n\r\n{inner}",
    "POST / HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n{inner}",
    "POST / HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n{inner}",
    "POST / HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n{inner}",
    "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{inner}",
    "GET / HTTP/1.1\r\nHost: {host}\r\nHost: evil.example\r\n\r\n{inner}",
    "GET http://evil.example/ HTTP/1.1\r\nHost: {host}\r\n\r\n{inner}",
    "GET /a b HTTP/1.1\r\nHost: {host}\r\n\r\n{inner}",
    "GET /../etc/passwd HTTP/1.1\r\nHost: {host}\r\n\r\n{inner}",
    "GET /%2e%2e/etc/passwd HTTP/1.1\r\nHost: {host}\r\n\r\n{inner}",
    "GET /%00 HTTP/1.1\r\nHost: {host}\r\n\r\n{inner}",
    "GET / HTTP/1.1\r\nHost: {host}\r\nX: \x00\r\n\r\n{inner}",
    "GET / HTTP/1.1\r\n\r\n{inner}",
    "CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n{inner}",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n{inner}",
    "GET / HTTP/3.0\r\nHost: {host}\r\n\r\n{inner}",
    "GET /\r\n\r\n{inner}",
]


class HostileClients(MusterTest):
    def setUp(self):
        super().setUp()
        self.order = self.path("order")
        self.sockets = []

    def tearDown(self):
        for one in self.sockets:
            one.close()
        super().tearDown()

    def job(self, workers=4):
        self.run_ = self.start(
            "--nproc-per-node", workers, "--", self.script(WORKER, "worker.py"), self.order
        )
        self.api = Api(self.run_)
        self.host = f"{self.api.host}:{self.api.port}"

    def end_with(self, code):
        """The workers end by themselves with `code`, and so does the job."""
        self.assertEqual(self.api.json("/api/v1/job")["phase"], "running")
        ranks = self.api.json("/api/v1/ranks")["ranks"]
        self.assertEqual({rank["state"] for rank in ranks}, {"running"})
        with open(self.order + ".new", "w", encoding="ascii") as file:
            file.write(str(code))
        os.rename(self.order + ".new", self.order)
        self.assert_code(self.run_.wait(), code)

    def connect(self, receive_buffer=None):
        one = socket.socket()
        if receive_buffer:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        one.settimeout(harness.PATIENCE)
        one.connect((self.api.host, self.api.port))
        self.sockets.append(one)
        return one

    def get(self, target):
        return (
            f"GET {target} HTTP/1.1\r\nHost: {self.host}\r\n"
            f"Authorization: Bearer {self.api.token}\r\n\r\n"
        ).encode()

    def all_of(self, one):
        """What comes until the server ends the connection."""
        got = b""
        try:
            while piece := one.recv(65536):
                got += piece
        except ConnectionResetError:
            pass
        return got

    def memory_kb(self, field="VmRSS"):
        text = harness.read_proc(self.run_.pid, "status").decode()
        return int(re.search(field + r":\s+(\d+)", text).group(1))

    def test_smuggled_requests_stop_nothing(self):
        self.job()
        inner = (
            f"POST /api/v1/stop HTTP/1.1\r\nHost: {self.host}\r\n"
            f"Authorization: Bearer {self.api.token}\r\nContent-Length: 0\r\n\r\n"
        )
        for text in SMUGGLING:
            one = self.connect()
            one.sendall(text.format(host=self.host, inner=inner).encode("latin-1"))
            got = self.all_of(one)
            self.assertRegex(got, rb"^HTTP/1\.1 [45]\d\d ", text)
            self.assertEqual(len(re.findall(rb"HTTP/1\.1 \d", got)), 1, text)
            one.close()
        self.end_with(0)

    def test_garbage_costs_its_own_connection(self):
        self.job()
        chance = random.Random(4)
        hello = bytes.fromhex("16030102000100") + bytes(200)
        pieces = [hello, b"\x00" * 100, b"\n" * 5000, b"\r\n" * 5000, b"GET " + b"/" * 200_000]
        pieces += [b"SSH-2.0-OpenSSH_9.2\r\n", b"\xff\xfe" * 1000, b"GET / HTTP/1.1\r\n" * 2000]
        pieces += [chance.randbytes(chance.randrange(1, 5000)) for _ in range(100)]
        for piece in pieces:
            for before in (b"", self.get("/healthz") * 3):
                one = self.connect()
                try:
                    one.sendall(before + piece)
                    one.shutdown(socket.SHUT_WR)
                except OSError:  # it has closed already
                    pass
                got = self.all_of(one)
                # Whole requests before it are answered, unless a reset overtook the answers.
                if before and got:
                    self.assertEqual(got.count(b"HTTP/1.1 200 "), 3, piece[:40])
                self.assertLessEqual(len(re.findall(rb"HTTP/1\.1 [45]\d\d ", got)), 1)
                one.close()
        self.end_with(0)

    def test_slow_senders_are_sent_away(self):
        self.job()
        slow = [self.connect() for _ in range(200)]
        text = f"GET /status HTTP/1.1\r\nHost: {self.host}\r\nX: ".encode() + b"y" * 10_000
        gone, sent = {}, 0
        deadline = time.monotonic() + harness.PATIENCE
        while len(gone) < len(slow):
            self.assertLess(time.monotonic(), deadline, f"{len(gone)} of {len(slow)} are gone")
            for one in slow:
                if one in gone:
                    continue
                if select.select([one], [], [], 0)[0]:
                    gone[one] = self.all_of(one)
                    continue
                one.sendall(text[sent : sent + 1])
            sent += 1
            self.assertEqual(self.api.get("/healthz").status, 200)
            time.sleep(0.1)
        for got in gone.values():
            self.assertTrue(got.startswith(b"HTTP/1.1 408 "), got[:60])
        self.end_with(7)

    def test_a_thousand_idle_connections_are_in_nobodys_way(self):
        self.job()
        for _ in range(1000):
            self.connect()
        for one in self.sockets[:100]:  # some have asked something once
            one.sendall(self.get("/healthz"))
            self.assertIn(b"200 OK", one.recv(4096))
        began = time.monotonic()
        for _ in range(20):
            self.assertEqual(self.api.get("/status").status, 200)
        self.assertLess(time.monotonic() - began, harness.PATIENCE / 3)
        # Beyond the most that are held the longest idle ones give way.
        for _ in range(200):
            self.connect()
        self.assertEqual(self.api.get("/status").status, 200)
        watch = select.poll()
        for one in self.sockets:
            watch.register(one, select.POLLIN | select.POLLRDHUP)
        wait_until(lambda: len(watch.poll(0)) >= 100, "idle connections give way")
        self.end_with(0)

    def test_answers_that_nobody_reads_are_not_kept(self):
        self.job()
        folder = self.api.json("/api/v1/job")["log_dir"]
        wait_until(
            lambda: os.path.exists(os.path.join(folder, "attempt_0", "0", "stdout.log")),
            "there is a log",
        )
        before = self.memory_kb()
        text = "".join(f"a line that can be found {i}\n" for i in range(LARGE_LINES))
        with open(os.path.join(folder, "attempt_0", "0", "stdout.log"), "ab") as file:
            file.write(text.encode())
        targets = ["/api/v1/logs/0/0/stdout", "/api/v1/search?q=line&limit=20000"]
        targets += ["/api/v1/download", "/api/v1/follow?tail=5000", "/status"]
        for target in targets * 12:
            self.connect(receive_buffer=4096).sendall(self.get(target) * 8)
        for _ in range(30):
            self.assertEqual(self.api.get("/healthz").status, 200)
            time.sleep(0.05)
        answer = self.api.get("/api/v1/search?q=found+399999", self.api.bearer)
        self.assertIn(b'"text":"a line that can be found 399999"', answer.body)
        if not os.environ.get("MUSTER_SANITIZED"):
            self.assertLess(self.memory_kb("VmHWM") - before, 64 << 10)
        self.end_with(0)

    def test_clients_that_vanish_leave_nothing_behind(self):
        self.job()
        targets = ["/api/v1/events?stream=1", "/api/v1/follow", "/api/v1/search?q=line", "/status"]

        def descriptors():
            return len(os.listdir(f"/proc/{self.run_.pid}/fd"))

        self.api.get("/status")
        wait_until(lambda: descriptors() > 0, "muster runs")
        before = descriptors()
        for turn in range(200):
            one = self.connect()
            one.sendall(self.get(targets[turn % len(targets)]))
            if turn % 3 == 0:
                one.recv(1)
            if turn % 2 == 0:  # a reset instead of an end
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            one.close()
        wait_until(lambda: descriptors() <= before + 2, "their connections are closed")
        self.end_with(3)


if __name__ == "__main__":
    harness.main()
