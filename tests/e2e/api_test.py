# SPDX-License-Identifier: Apache-2.0
"""The HTTP API of a running job: what it tells, to whom, and that nothing is told twice or left out."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

import harness
from api import Api, Known
from harness import MusterTest, read, wait_until
from nodes import NodesTest

STRANGER = 65534  # a real second user

# Prints numbered lines, fast enough that a reader is always behind and slow enough to follow.
COUNTER = """
import os, sys, time
rank = os.environ["RANK"]
for i in range(int(sys.argv[1])):
    print(f"rank {rank} line {i}", flush=i % 50 == 49)
    if i % 50 == 49:
        time.sleep(0.01)
"""

# What a user that is not ours gets for a request: prints the status.
ASK = """
import http.client, sys
connection = http.client.HTTPConnection(sys.argv[1], int(sys.argv[2]), timeout=20)
headers = {"Authorization": "Bearer " + sys.argv[5]} if len(sys.argv) > 5 else {}
connection.request(sys.argv[3], sys.argv[4], headers=headers)
print(connection.getresponse().status)
"""


class ApiTest(MusterTest):
    def job(self, *words, options=(), workers=2, **rest):
        """A job that runs until it is told to stop, or the given one."""
        words = words or ("sleep", "1000")
        run = self.start("--nproc-per-node", workers, *options, "--no-python", *words, **rest)
        api = Api(run)
        return run, api

    def finish(self, run, number=signal.SIGTERM):
        run.signal(number)
        run.wait()


class Access(ApiTest):
    def test_the_token_opens_in_each_of_its_forms(self):
        run, api = self.job()
        cookie = {"Cookie": f"muster_{api.port}={api.token}"}
        for headers in (api.bearer, cookie):
            self.assertEqual(api.post("/api/v1/restart?x=1", headers).status in (200, 409), True)
        answer = api.get("/?token=" + api.token, {"Accept": "text/html"})
        self.assertEqual(answer.status, 303)
        self.assertEqual(answer.headers["Location"], "/")
        self.assertIn("HttpOnly", answer.headers["Set-Cookie"])
        self.assertIn("SameSite=Strict", answer.headers["Set-Cookie"])
        self.assertIn(api.token, answer.headers["Set-Cookie"])
        self.finish(run)

    @unittest.skipUnless(os.geteuid() == 0, "only root can be two users")
    def test_another_user_of_this_machine_needs_the_token(self):
        run, api = self.job()

        def as_stranger(*words):
            command = ["setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups"]
            command += ["/usr/bin/python3", "-c", ASK, api.host, str(api.port), *words]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd="/")
            return done.stdout.strip() or done.stderr

        self.assertEqual(as_stranger("GET", "/status"), "401")
        self.assertEqual(as_stranger("GET", "/api/v1/logs/0/0/stdout"), "401")
        self.assertEqual(as_stranger("GET", "/"), "401")
        self.assertEqual(as_stranger("GET", "/healthz"), "200")
        self.assertEqual(as_stranger("GET", "/status", "0" * 32), "401")
        self.assertEqual(as_stranger("GET", "/status", api.token), "200")
        self.assertEqual(as_stranger("POST", "/api/v1/stop"), "401")
        self.assertEqual(api.get("/status").status, 200)  # we are the user that runs it
        self.finish(run)

    def test_what_changes_the_job_always_needs_the_token(self):
        run, api = self.job()
        for target in ("/api/v1/stop", "/api/v1/stop?kill=1", "/api/v1/restart"):
            answer = api.post(target)
            self.assertEqual(answer.status, 401, target)
            self.assertIn("Bearer", answer.json()["error"]["hint"])
            self.assertEqual(api.get(target, api.bearer).status, 405)
        self.assertEqual(api.json("/status")["phase"], "running")
        self.finish(run)

    def test_other_sites_get_nothing(self):
        run, api = self.job()
        own = f"http://{api.host}:{api.port}"
        for headers in (
            {"Host": "evil.example"},
            {"Host": f"evil.example:{api.port}"},
            {"Origin": "https://evil.example"},
            {"Origin": "null"},
            {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
        ):
            for more in ({}, api.bearer):
                self.assertEqual(api.get("/status", {**headers, **more}).status, 403, headers)
            self.assertEqual(api.post("/api/v1/stop", {**headers, **api.bearer}).status, 403)
        self.assertEqual(api.get("/status", {"Origin": own}).status, 200)
        self.assertEqual(api.get("/status", {"Host": "localhost:1234"}).status, 200)
        self.assertEqual(api.json("/status")["phase"], "running")
        self.finish(run)

    def test_on_all_addresses_it_is_called_by_its_own_names_alone(self):
        run, api = self.job(options=("--http", "0.0.0.0:0"))
        api.host = "127.0.0.1"
        for host, status in (
            (socket.gethostname(), 200),
            ("127.0.0.1", 200),
            ("192.0.2.7", 403),
            ("evil.example", 403),
        ):
            self.assertEqual(api.get("/status", {"Host": f"{host}:{api.port}"}).status, status, host)
        self.finish(run)


class Rows(ApiTest):
    def test_every_address_answers(self):
        run, api = self.job()
        wait_until(lambda: api.json("/status")["phase"] == "running", "the job runs")
        self.assertEqual(api.json("/api/v1/job")["world_size"], 2)
        self.assertEqual([r["rank"] for r in api.json("/api/v1/ranks")["ranks"]], [0, 1])
        self.assertEqual([r["rank"] for r in api.json("/api/v1/ranks?ranks=1")["ranks"]], [1])
        self.assertEqual(len(api.json("/api/v1/nodes")["nodes"]), 1)
        self.assertEqual(api.json("/api/v1/attempts")["attempts"][0]["state"], "running")
        self.assertEqual(api.json("/api/v1/failures"), {"failures": []})
        self.assertIn("samples", api.json("/api/v1/samples"))
        self.assertEqual(api.get("/healthz").body, b"ok\n")
        self.assertIn(b"# TYPE muster_", api.get("/metrics").body)
        page = api.get("/")
        self.assertEqual(page.headers["Content-Type"], "text/html; charset=utf-8")
        self.assertIn(b"<!doctype html>", page.body.lower())
        missing = api.get("/api/v1/nothing")
        self.assertEqual(missing.status, 404)
        self.assertIn("/api/v1/job", missing.json()["error"]["hint"])
        self.finish(run)

    def test_head_answers_as_get_does_without_the_body(self):
        run, api = self.job()
        for target in ("/", "/status", "/api/v1/job", "/api/v1/events", "/api/v1/logs/0/0/stdout"):
            answer = api.ask("HEAD", target)
            self.assertEqual((answer.status, answer.body), (200, b""), target)
        self.finish(run)

    def test_pids_are_those_of_the_workers(self):
        run, api = self.job()
        wait_until(lambda: api.json("/status")["phase"] == "running", "the job runs")
        for row in api.json("/api/v1/ranks")["ranks"]:
            self.assertTrue(harness.alive(row["pid"]))
            self.assertIn(b"sleep", harness.read_proc(row["pid"], "cmdline"))
        self.finish(run)


class Events(ApiTest):
    def test_a_watcher_sees_the_whole_job_to_its_end(self):
        script = self.script('test "$RANK" = 1 && sleep 0.3 && echo why >&2 && exit 3\nexec sleep 99')
        run, api = self.job(script, options=("--max-restarts", "1"), workers=3)
        known = Known()
        kinds = []
        with api.stream("/api/v1/events?stream=1") as stream:
            for event, _, data in stream.messages():
                known.take(event, data)
                kinds += [row["event"] for row in data.get("events", [])]
        run.wait()
        self.assertEqual(known.job["outcome"], "failed")
        self.assertEqual(known.job["exit_code"], 3)
        self.assertEqual(known.job["attempt"], 1)
        self.assertEqual(kinds[-1], "job_ended")
        self.assertEqual(known.events, list(range(len(known.events))))
        for attempt in (0, 1):
            self.assertEqual(known.rows["ranks", attempt, 1]["state"], "failed")
            self.assertEqual(known.rows["ranks", attempt, 0]["state"], "stopped")
            failure = known.rows["attempts", attempt]["failure"]
            self.assertEqual((failure["rank"], failure["exit_code"]), (1, 3))
            self.assertIn("why", failure["excerpt"])

    def test_events_as_lines_are_those_of_the_file(self):
        run, api = self.job(options=("--log-dir", self.path("logs")))
        wait_until(lambda: api.json("/status")["phase"] == "running", "the job runs")
        lines = api.get("/api/v1/events").body.decode().splitlines()
        self.assertEqual([json.loads(line)["seq"] for line in lines], list(range(len(lines))))
        later = api.get("/api/v1/events?since=2").body.decode().splitlines()
        self.assertEqual(later[: len(lines) - 2], lines[2:])
        self.finish(run)
        path = os.path.join(self.run_folder(self.path("logs")), "events.jsonl")
        self.assertEqual(read(path).decode().splitlines()[: len(lines)], lines)

    def test_a_watcher_that_is_cut_off_again_and_again_misses_nothing(self):
        # A restart every 0.2 s, watched through connections that last for a message or two.
        script = self.script('test "$RANK" = 1 && sleep 0.2 && exit 1\nexec sleep 99')
        options = (*harness.RESTART_FREELY, "--max-restarts", "5")
        run, api = self.job(script, options=options, workers=4)
        known = Known()
        last_id = ""
        while known.job.get("outcome") is None:
            headers = {"Last-Event-ID": last_id} if last_id else {}
            with api.stream("/api/v1/events?stream=1", headers) as stream:
                for number, (event, _, data) in enumerate(stream.messages()):
                    if event == "state":
                        self.assertEqual(last_id, "", "told the whole again")
                    known.take(event, data)
                    if number == 1 and known.job.get("attempt", 0) < 4:
                        break
                last_id = stream.last_id
        run.wait()
        self.assertEqual(known.events, list(range(len(known.events))))
        for attempt in range(6):
            self.assertEqual(known.rows["attempts", attempt]["state"], "failed")
            self.assertEqual(known.rows["ranks", attempt, 1]["exit_code"], 1)
            self.assertEqual(known.rows["ranks", attempt, 3]["state"], "stopped")


class Follower:
    """Reads logs through the follow endpoint and checks that each line comes once, in order."""

    def __init__(self, api, target):
        self.api = api
        self.target = target
        self.lines = {}
        self.cursor = ""
        self.ended = False

    def read(self, enough=lambda lines: False):
        """Goes on from where it was, until enough(lines) or the end."""
        headers = {"Last-Event-ID": self.cursor} if self.cursor else {}
        with self.api.stream(self.target, headers) as stream:
            assert stream.status == 200, stream.status
            for event, cursor, data in stream.messages():
                if event == "lines":
                    self.take(data)
                    self.cursor = cursor
                assert event not in ("skip", "trouble", "away"), (event, data)
                self.ended = self.ended or event == "end"
                if enough(self.lines):
                    return

    def take(self, page):
        lines = self.lines.setdefault((page["rank"], page["stream"]), [])
        for offset, _, _, size, ended, text, *_ in page["lines"]:
            assert ended, page
            expected = lines[-1][0] + lines[-1][1] + 1 if lines else 0
            assert offset == expected, (offset, expected)
            lines.append((offset, size, text))

    def texts(self, rank, stream="stdout"):
        return [text for _, _, text in self.lines.get((rank, stream), [])]


class Logs(ApiTest):
    COUNT = 20_000

    def counter(self, **rest):
        script = self.script(COUNTER, "count.py")
        options = ("--log-dir", self.path("logs"), "--redirects", "3")
        return self.job(sys.executable, script, self.COUNT, options=options, **rest)

    def expected(self, rank):
        return [f"rank {rank} line {i}" for i in range(self.COUNT)]

    def test_a_follower_has_every_line_once_however_often_it_is_cut_off(self):
        run, api = self.counter()
        follower = Follower(api, "/api/v1/follow?streams=stdout&tail=5000")
        total = 0
        while not follower.ended:
            total += 3_000
            follower.read(lambda lines: sum(map(len, lines.values())) >= total)
        run.wait()
        for rank in (0, 1):
            self.assertEqual(follower.texts(rank), self.expected(rank))

    def test_a_follower_that_stays_has_the_last_line_too(self):
        run, api = self.counter(workers=1)
        follower = Follower(api, "/api/v1/follow?streams=stdout&tail=5000")
        follower.read()
        run.wait()
        self.assertTrue(follower.ended)
        self.assertEqual(follower.texts(0), self.expected(0))

    def test_a_log_is_read_by_bytes_lines_and_from_its_end(self):
        script = self.script("seq -f 'line %g' 0 999; echo 'not whole' | tr -d '\\n'; exec sleep 99")
        run, api = self.job(script, workers=1)
        log = "/api/v1/logs/0/0/stdout"
        whole = "".join(f"line {i}\n" for i in range(1000)).encode() + b"not whole"
        wait_until(lambda: api.get(log).body == whole, "all is in the log")
        part = api.get(log, {"Range": "bytes=7-13"})
        self.assertEqual((part.status, part.body), (206, whole[7:14]))
        self.assertEqual(part.headers["Content-Range"], f"bytes 7-13/{len(whole)}")
        page = api.json(log + "?line=5&lines=2")
        self.assertEqual([line[5] for line in page["lines"]], ["line 5", "line 6"])
        self.assertEqual([line[1] for line in page["lines"]], [5, 6])
        self.assertTrue(all(line[2] > 0 for line in page["lines"]), "lines have times")
        page = api.json(log + "?tail=2")
        self.assertEqual([line[5] for line in page["lines"]], ["line 999", "not whole"])
        self.assertTrue(page["growing"])
        before = api.json(f"{log}?before={page['offset']}&lines=1")
        self.assertEqual([line[5] for line in before["lines"]], ["line 998"])
        self.finish(run)

    def test_many_readers_at_once_get_the_same(self):
        run, api = self.counter(workers=1)
        followers = [Follower(api, "/api/v1/follow?streams=stdout&tail=5000") for _ in range(8)]
        threads = [threading.Thread(target=follower.read) for follower in followers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        run.wait()
        for follower in followers:
            self.assertEqual(follower.texts(0), self.expected(0))


class Changes(ApiTest):
    def test_stop_ends_the_job_as_a_signal_does(self):
        script = self.script("trap 'echo stopped; exit 0' TERM INT; while :; do sleep 0.05; done")
        run, api = self.job(script)
        wait_until(lambda: api.json("/status")["phase"] == "running", "the job runs")
        self.assertEqual(api.post("/api/v1/stop", api.bearer).json(), {"ok": True})
        run.wait()
        self.assertEqual(run.out.count("stopped"), 2)
        self.assertIn("HTTP from 127.0.0.1", run.err)

    def test_kill_asks_no_worker(self):
        script = self.script("trap '' TERM INT; while :; do sleep 0.05; done")
        run, api = self.job(script)
        wait_until(lambda: api.json("/status")["phase"] == "running", "the job runs")
        begun = time.monotonic()
        self.assertEqual(api.post("/api/v1/stop?kill=1", api.bearer).status, 200)
        run.wait()
        self.assertLess(time.monotonic() - begun, 15)  # the grace is 30 s

    def test_restart_begins_another_attempt(self):
        run, api = self.job()
        wait_until(lambda: api.json("/status")["phase"] == "running", "the job runs")
        self.assertEqual(api.post("/api/v1/restart", api.bearer).json(), {"ok": True})
        wait_until(
            lambda: (s := api.json("/status"))["attempt"] == 1 and s["phase"] == "running",
            "the next attempt runs",
        )
        self.finish(run)


class TwoNodes(NodesTest):
    def two(self, *worker):
        a, b = self.pair(worker=worker)
        return a, b, Api(a.run)

    def test_one_page_has_the_logs_of_both(self):
        script = self.script('echo "hello of $RANK"; echo "err $RANK" >&2; exec sleep 99')
        a, b, api = self.two(script)
        for rank in (0, 1):
            log = f"/api/v1/logs/0/{rank}"
            wait_until(
                lambda: api.get(f"{log}/stdout").body == f"hello of {rank}\n".encode(),
                f"the log of rank {rank} is had",
            )
            wait_until(lambda: api.get(f"{log}/stderr").body != b"", "and its stderr")
            page = api.json(f"{log}/stdout?tail=1")
            self.assertEqual(page["lines"][0][5], f"hello of {rank}")
            part = api.get(f"{log}/stdout", {"Range": "bytes=0-4"})
            self.assertEqual((part.status, part.body), (206, b"hello"))
        self.assertEqual(len(api.json("/api/v1/nodes")["nodes"]), 2)
        # The other node's own page has its own ranks.
        other = Api(b.run)
        self.assertEqual([row["rank"] for row in other.json("/api/v1/ranks")["ranks"]], [1])
        a.signal(signal.SIGTERM)
        for node in (a, b):
            node.run.wait()

    def test_one_stream_follows_both_without_gap_or_repeat(self):
        script = self.script(COUNTER, "count.py")
        a, b, api = self.two(sys.executable, script, "5000")
        wait_until(lambda: api.json("/status")["phase"] == "running", "the job runs")
        follower = Follower(api, "/api/v1/follow?streams=stdout&tail=5000")
        total = 0
        while not follower.ended:
            total += 1_500
            follower.read(lambda lines: sum(map(len, lines.values())) >= total)
        for node in (a, b):
            node.run.wait()
        for rank in (0, 1):
            self.assertEqual(follower.texts(rank), [f"rank {rank} line {i}" for i in range(5000)])

    def test_a_node_that_is_lost_is_told(self):
        script = self.script('echo "hello of $RANK"; exec sleep 99')
        a, b, api = self.two(script)
        wait_until(lambda: api.get("/api/v1/logs/0/1/stdout").body == b"hello of 1\n", "b's log is had")
        with api.stream("/api/v1/follow?attempt=0&streams=stdout") as stream:
            ranks = set()
            stream.until(
                lambda event, data: event == "lines" and not ranks.add(data["rank"]) and len(ranks) == 2
            )
            b.kill()
            away = stream.until(lambda event, _: event == "away")[-1][2]
        self.assertEqual(away["ranks"], "1")
        self.assertEqual(away["host"], self.host_name("b"))
        answer = api.get("/api/v1/logs/0/1/stdout")
        self.assertEqual(answer.status, 502)
        self.assertIn("attempt_0/0/stdout.log", answer.json()["error"]["hint"])
        a.signal(signal.SIGTERM)
        a.run.wait()


if __name__ == "__main__":
    harness.main()
