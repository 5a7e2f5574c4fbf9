# SPDX-License-Identifier: Apache-2.0
"""Search and download over HTTP: of a running job, of several nodes, and of a run that is over."""

import io
import json
import os
import re
import signal
import socket
import sys
import tarfile
import time

import harness
from api import Api
from harness import MUSTER, MusterTest, wait_until
from nodes import NodesTest

# What it prints has one line that is looked for, among many.
WORKER = """
import os, sys, time
rank = os.environ["RANK"]
for i in range(int(sys.argv[1])):
    print(f"rank {rank} line {i}")
print(f"rank {rank} found <the> needle", flush=True)
print("behind it", flush=True)
if len(sys.argv) > 2:
    time.sleep(1000)
"""


def told(body):
    rows = [json.loads(line) for line in body.splitlines()]
    hits = [row["hit"] for row in rows if "hit" in row]
    return hits, rows[-1]["done"]


def unpacked(body):
    with tarfile.open(fileobj=io.BytesIO(body), mode="r:gz") as archive:
        return {one.name: archive.extractfile(one).read() for one in archive.getmembers()}


class OneNode(MusterTest):
    def test_a_running_job_is_searched(self):
        script = self.script(WORKER, "worker.py")
        run = self.start("--nproc-per-node", 2, "--", script, "1000", "stay")
        api = Api(run)

        def both():
            answer = api.get("/api/v1/search?q=found.*NEEDLE&regex=1&context=1")
            self.assertEqual(answer.headers["Content-Type"], "application/x-ndjson")
            hits, done = told(answer.body)
            return (hits, done) if len(hits) == 2 and all(hit["after"] for hit in hits) else None

        hits, done = wait_until(both, "both ranks have the line")
        self.assertEqual(sorted(hit["rank"] for hit in hits), [0, 1])
        for hit in hits:
            self.assertEqual(hit["text"], f"rank {hit['rank']} found <the> needle")
            self.assertEqual(hit["matches"], [[7, 25]])
            self.assertEqual(hit["number"], 1000)
            self.assertEqual(hit["before"][0][5], f"rank {hit['rank']} line 999")
            self.assertEqual(hit["after"][0][5], "behind it")
            self.assertGreater(hit["time_us"], (time.time() - 3600) * 1e6)
            page = api.json(f"/api/v1/logs/0/{hit['rank']}/stdout?offset={hit['offset']}&lines=1")
            self.assertEqual(page["lines"][0][5], hit["text"])
        self.assertFalse(done["truncated"])
        run.signal(signal.SIGTERM)
        run.wait()

    def test_a_search_whose_client_leaves_is_ended(self):
        script = self.script(WORKER, "worker.py")
        run = self.start("--nproc-per-node", 1, "--", script, "10", "stay")
        api = Api(run)
        folder = api.json("/api/v1/job")["log_dir"]
        log = os.path.join(folder, "attempt_0", "0", "stdout.log")
        wait_until(lambda: b"behind it" in harness.read(log), "its lines are there")
        with open(log, "ab") as file:  # sparse, so that it is long to read and small on the disk
            file.truncate(1 << 40)
        before = len(os.listdir(f"/proc/{run.pid}/fd"))
        one = socket.create_connection((api.host, api.port))
        target = "/api/v1/search?q=no+such+text"
        one.sendall(f"GET {target} HTTP/1.1\r\nHost: {api.host}:{api.port}\r\n\r\n".encode())
        self.assertIn(b"200 OK", one.recv(1000))
        self.assertIn(b'"progress"', one.recv(1000))
        one.close()

        def busy():
            fields = harness.read_proc(run.pid, "stat").rpartition(b")")[2].split()
            return int(fields[11]) + int(fields[12])

        def rests():
            ticks = busy()
            time.sleep(0.3)
            return busy() - ticks <= 3

        wait_until(rests, "nothing is searched any more")
        self.assertLessEqual(len(os.listdir(f"/proc/{run.pid}/fd")), before + 1)
        run.signal(signal.SIGTERM)
        run.wait()

    def test_a_run_that_is_over_is_searched_and_downloaded(self):
        script = self.script(WORKER, "worker.py")
        run = self.muster("--nproc-per-node", 2, "--log-dir", self.path("logs"), "--", script, "5000")
        self.assert_code(run, 0)
        folder = self.run_folder(self.path("logs"))
        view = self.start(command=[MUSTER, "view", folder])
        url = wait_until(
            lambda: re.search(r"http://([\d.]+):(\d+)/\?token=(\w+)", view.out + view.err),
            "muster view says where",
        )
        api = Api.__new__(Api)
        api.host, api.port, api.token = url.group(1), int(url.group(2)), url.group(3)
        hits, _ = told(api.get("/api/v1/search?q=needle", api.bearer).body)
        self.assertEqual(sorted(hit["rank"] for hit in hits), [0, 1])
        files = unpacked(api.get("/api/v1/download?streams=stdout", api.bearer).body)
        self.assertEqual(
            files,
            {
                f"attempt_0/rank_{rank}/stdout.log": harness.read(
                    os.path.join(folder, "attempt_0", str(rank), "stdout.log")
                )
                for rank in (0, 1)
            },
        )
        view.signal(signal.SIGTERM)
        view.wait()
        found = self.muster("needle", command=[MUSTER, "logs", folder, "--grep"])
        self.assert_code(found, 0)
        self.assertEqual(found.out.count("found <the> needle"), 2)


class TwoNodes(NodesTest):
    def test_both_are_searched_and_downloaded(self):
        script = self.script(WORKER, "worker.py")
        a, b = self.pair(worker=[sys.executable, script, "20000", "stay"])
        api = Api(a.run)

        def both():
            answer = api.get("/api/v1/search?q=needle")
            if answer.status != 200:
                return None
            hits, done = told(answer.body)
            return done if sorted(hit["rank"] for hit in hits) == [0, 1] else None

        done = wait_until(both, "both nodes tell their line")
        self.assertNotIn("unreachable", done)
        hits, done = told(api.get("/api/v1/search?q=line&limit=3000").body)
        self.assertEqual((len(hits), done["truncated"]), (3000, True))
        files = unpacked(api.get("/api/v1/download?streams=stdout").body)
        lines = "".join(f"rank 1 line {i}\n" for i in range(20_000))
        self.assertTrue(files["attempt_0/rank_1/stdout.log"].startswith(lines.encode()))
        self.assertTrue(files["attempt_0/rank_0/stdout.log"].startswith(b"rank 0 line 0\n"))
        # The other node's own page has what is there.
        hits, done = told(Api(b.run).get("/api/v1/search?q=needle").body)
        self.assertEqual([hit["rank"] for hit in hits], [1])
        a.signal(signal.SIGTERM)
        for node in (a, b):
            node.run.wait()

    def test_a_node_that_is_lost_is_named(self):
        script = self.script(WORKER, "worker.py")
        a, b = self.pair(worker=[sys.executable, script, "10", "stay"])
        api = Api(a.run)
        wait_until(
            lambda: len(told(api.get("/api/v1/search?q=needle").body)[0]) == 2, "both are searched"
        )
        b.kill()
        wait_until(lambda: api.json("/api/v1/failures")["failures"], "the loss is known")
        hits, done = told(api.get("/api/v1/search?q=needle&attempt=0").body)
        self.assertEqual([hit["rank"] for hit in hits], [0])
        self.assertEqual(done["unreachable"], [self.host_name("b")])
        files = unpacked(api.get("/api/v1/download?attempt=0&streams=stdout").body)
        self.assertIn("attempt_0/rank_0/stdout.log", files)
        self.assertIn(self.host_name("b").encode(), files["muster-notes.txt"])
        a.signal(signal.SIGTERM)
        a.run.wait()


if __name__ == "__main__":
    harness.main()
