# SPDX-License-Identifier: Apache-2.0
"""What being watched costs.

GET /status of a job of 1,000 and of 4,096 ranks (bench/status/large_job.cc): bytes, microseconds to
build it, requests a second and 99th percentile with wrk on eight connections.

Side effects: 64 workers that write 1,000 lines a second each, with --http off and with 20 clients of
event streams (readers, some that stall, some that vanish and come back), a search that runs all the
time and /status once a second. The job's time from its start to its last worker's end, alternating;
how long muster then stays to tell its watchers of the end; the highest resident set of its processes
meanwhile. The clients have the lowest priority, so that their own work counts little.
"""

import argparse
import glob
import http.client
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

import peers

LARGE_JOB = os.path.join(peers.BUILD, "bench", "status", "large_job")
WRITER = os.path.join(peers.BUILD, "bench", "tee_writer")
MUSTER = os.path.join(peers.BUILD, "muster")
SANITIZED = os.path.basename(peers.BUILD) == "dev"
CLIENTS = 20
READERS, STALLED = 8, 6  # the rest vanish
SEARCHED = "0000042"
MAX_STATUS = 64 << 10
MB = 1 << 20


class Client:
    """Requests of one muster, with its token."""

    def __init__(self, url):
        parts = urllib.parse.urlsplit(url)
        self.host, self.port = parts.hostname, parts.port
        self.url = f"http://{self.host}:{self.port}"
        self.headers = {"Authorization": "Bearer " + parts.query.partition("=")[2]}

    def open(self, target):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=30)
        connection.request("GET", target, headers=self.headers)
        return connection, connection.getresponse()


def number_of(text, pattern):
    value, unit = re.search(pattern, text).groups()
    return float(value) * {"us": 1e-3, "ms": 1, "s": 1e3}[unit]


def status(ranks, seconds, times):
    """Bytes, build time (median, p99 in us), requests a second, p99 in ms."""
    measured = subprocess.run(
        [LARGE_JOB, str(ranks), str(times)], capture_output=True, text=True, check=True
    )
    size, median, p99 = map(float, measured.stdout.split())
    server = subprocess.Popen([LARGE_JOB, str(ranks)], stdout=subprocess.PIPE, text=True)
    try:
        client = Client(server.stdout.readline().strip())
        header = "Authorization: " + client.headers["Authorization"]
        words = ["wrk", "-t1", "-c8", f"-d{seconds}s", "--latency", "-H", header]
        found = subprocess.run(
            [*words, client.url + "/status"], capture_output=True, text=True, check=True
        )
    finally:
        server.kill()
        server.wait()
    if "Non-2xx" in found.stdout:
        raise SystemExit(found.stdout)
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", found.stdout).group(1))
    return size, median, p99, rate, number_of(found.stdout, r"99%\s+([\d.]+)(us|ms|s)")


class Watchers:
    """Twenty event streams, a search and /status, each on a thread of its own."""

    def __init__(self, client):
        self.client = client
        self.over = threading.Event()
        self.read = self.searches = self.statuses = 0
        kinds = [self.reader] * READERS + [self.stalled] * STALLED
        kinds += [self.vanishing] * (CLIENTS - len(kinds)) + [self.search, self.status]
        self.threads = [threading.Thread(target=self.guard, args=(kind,)) for kind in kinds]
        for thread in self.threads:
            thread.start()

    def end(self):
        self.over.set()
        for thread in self.threads:
            thread.join()

    def guard(self, kind):
        # Only this thread: on Linux a nice value is a thread's own.
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
        chance = random.Random(threading.get_native_id())
        while not self.over.is_set():
            try:
                kind(chance)
            except (OSError, http.client.HTTPException):
                self.over.wait(0.2)  # the job is over, or not there yet

    def target(self, chance):
        first = chance.randrange(0, 60)
        return chance.choice(
            ["/api/v1/events?stream=1", f"/api/v1/follow?ranks={first}-{first + 3}&tail=100"]
        )

    def reader(self, chance):
        connection, answer = self.client.open(self.target(chance))
        while not self.over.is_set():
            piece = answer.read1(1 << 16)
            self.read += len(piece)
            if not piece:
                self.over.wait(0.2)
                break
        connection.close()

    def stalled(self, chance):
        connection, _ = self.client.open(self.target(chance))
        self.over.wait()
        connection.close()

    def vanishing(self, chance):
        connection, answer = self.client.open(self.target(chance))
        answer.read1(1 << 12)
        self.over.wait(chance.uniform(0.05, 1))
        connection.sock and connection.sock.close()
        connection.close()

    def search(self, _):
        connection, answer = self.client.open(f"/api/v1/search?q={SEARCHED}&limit=1000")
        if answer.status != 200:
            raise SystemExit(f"search: {answer.status}")
        while answer.read1(1 << 16) and not self.over.is_set():
            pass
        self.searches += 1
        connection.close()

    def status(self, _):
        connection, answer = self.client.open("/status")
        answer.read()
        connection.close()
        self.statuses += 1
        self.over.wait(1)


def resident(pids):
    total = 0
    for pid in pids:
        try:
            total += peers.field(pid, "VmRSS") * 1024
        except (OSError, KeyError):
            pass
    return total


def job_seconds(folder):
    (path,) = glob.glob(os.path.join(folder, "*", "events.jsonl"))
    with open(path) as events:
        return max(
            event["mono_us"] / 1e6
            for event in map(json.loads, events)
            if event["event"] == "worker_exited"
        )


def noisy(workers, seconds, watched):
    """The job's seconds, those until muster was gone, the highest memory, and who watched."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--nproc-per-node", workers, "--log-dir", folder, "--no-python"]
        options = (["--http", "127.0.0.1:0"] if watched else ["--http", "off"]) + options
        program = [WRITER, "pace", 1000 * seconds, 1000]
        with open(os.path.join(folder, "said"), "w+") as said:
            began = time.monotonic()
            process = peers.start([MUSTER], [*options, *program], stderr=said)
            watchers = None
            memory = 0
            while process.poll() is None:
                time.sleep(0.05)
                if watched and watchers is None:
                    said.seek(0)
                    found = re.search(r"http://\S+token=\w+", said.read())
                    watchers = Watchers(Client(found.group(0))) if found else None
                try:
                    memory = max(memory, resident(peers.launcher_pids(process.pid)))
                except OSError:
                    pass
            wall = time.monotonic() - began
        if watchers:
            watchers.end()
        if process.returncode != 0:
            raise SystemExit("the job failed")
        return job_seconds(folder), wall, memory, watchers


def show(title, value, unit, target=None, good=None):
    mark = "" if target is None else f"   (target {target}: {'met' if good else 'NOT MET'})"
    print(f"  {title:58} {value:>10} {unit}{mark}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="seconds only; fails if far off")
    args = parser.parse_args()
    if args.quick:
        args.rounds, args.seconds = 1, 2
    print(peers.machine())
    wrong = []
    for ranks in (1000, 4096):
        size, median, p99, rate, latency = status(ranks, *((1, 50) if args.quick else (5, 2000)))
        print(f"GET /status, {ranks} ranks")
        show("size", int(size), "bytes", MAX_STATUS, size < MAX_STATUS)
        target = (1000, median < 1000) if ranks == 1000 else ()
        show("built in, median", f"{median:.0f}", "us", *target)
        show("built in, p99", f"{p99:.0f}", "us")
        show("requests a second, 8 connections", f"{rate:.0f}", "1/s")
        show("latency, p99", f"{latency:.2f}", "ms")
        if size >= MAX_STATUS or (median > 5000 and not SANITIZED):
            wrong.append(f"/status of {ranks} ranks")
    jobs = {False: [], True: []}
    goodbyes = {False: [], True: []}
    memories = []
    for _ in range(args.rounds):
        for watched in (False, True):
            job, wall, memory, watchers = noisy(8 if args.quick else 64, args.seconds, watched)
            jobs[watched].append(job)
            goodbyes[watched].append(wall - job)
            if watched:
                memories.append(memory)
                if watchers is None or watchers.read == 0 or watchers.searches == 0:
                    wrong.append("nobody watched")
    off, on = (statistics.median(jobs[watched]) for watched in (False, True))
    print("64 workers, 1,000 lines a second each" if not args.quick else "8 workers")
    show("job with --http off, median", f"{off:.2f}", "s")
    show("job with 20 clients and a search, median", f"{on:.2f}", "s")
    slower = 100 * (on / off - 1)
    show("slower", f"{slower:.1f}", "%", 3, slower < 3)
    for watched, name in ((False, "--http off"), (True, "clients, some of which take nothing")):
        goodbye = statistics.median(goodbyes[watched])
        show(f"start and end of muster around it, {name}", f"{goodbye:.2f}", "s")
    show("muster's memory, highest", f"{max(memories) / MB:.1f}", "MB", 64, max(memories) < 64 * MB)
    if slower > 100 or (max(memories) > 200 * MB and not SANITIZED):
        wrong.append("side effects")
    if args.quick and wrong:
        sys.exit("far off: " + ", ".join(wrong))


main()
