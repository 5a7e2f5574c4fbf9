# SPDX-License-Identifier: Apache-2.0
"""Rows 54, 58 to 63, 68 and 69: jobs of two and three nodes on loopback."""

import os
import signal
import socket
import time

import harness
from conformance import PEER, ConformanceTest, row
from harness import alive, wait_until
from nodes import free_port

# How much later than at once something may be: torchrun polls, and imports for seconds.
AT_ONCE = 30 if PEER else 10


class Nodes(ConformanceTest):
    def setUp(self):
        super().setUp()
        self.port = free_port()

    def node(self, name, *options, worker=None, conf=(), nnodes=2, address="127.0.0.1", **env):
        """One of several agents; $NODE is its name in the worker."""
        conf = ",".join(["read_timeout=20", *conf])
        return self.start(
            *("--nnodes", nnodes, "--rdzv-backend", "c10d", "--rdzv-id", "job"),
            *("--rdzv-endpoint", f"127.0.0.1:{self.port}", "--rdzv-conf", conf),
            *("--local-addr", address, "--log-dir", self.path("logs." + name)),
            *options,
            "--no-python",
            worker or self.told(),
            env={"NODE": name, **env},
        )

    def told(self):
        """A worker that writes its environment to env.NODE.RANK.RESTARTS and waits until the file
        do.NODE.RANK or do.all says what it exits with; SIGTERM goes to term.NODE."""
        return self.script(
            """
            trap 'echo "$RANK" >>"$T/term.$NODE"; exit 143' TERM
            env >"$T/new.$NODE.$RANK"
            echo "PID=$$" >>"$T/new.$NODE.$RANK"
            mv "$T/new.$NODE.$RANK" "$T/env.$NODE.$RANK.$TORCHELASTIC_RESTART_COUNT"
            while :; do
              for file in "$T/do.$NODE.$RANK.$TORCHELASTIC_RESTART_COUNT" "$T/do.all"; do
                if [ -e "$file" ]; then exit "$(cat "$file")"; fi
              done
              sleep 0.05
            done
            """,
            "told.sh",
        )

    def tell(self, who, code):
        with open(self.path("new"), "w") as file:
            file.write(str(code))
        os.rename(self.path("new"), self.path("do." + who))

    def env_of_worker(self, name, rank, restarts=0):
        """The environment of this worker, once it runs."""
        path = self.path(f"env.{name}.{rank}.{restarts}")
        wait_until(lambda: os.path.exists(path), f"rank {rank} runs on {name}")
        lines = harness.read(path).decode().splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def wait_for_port(self):
        def answers():
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                return False
            return True

        wait_until(answers, "the endpoint listens")

    def started_workers(self):
        return sorted(name for name in os.listdir(self.dir) if name.startswith("env."))

    @row(54, "c10d, waiting for a second node: SIGTERM -> killed by signal 15; SIGINT -> by 2")
    def test_signals_while_waiting(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(signal=number):
                self.port = free_port()
                run = self.node("a")
                self.wait_for_port()
                run.signal(number)
                self.assert_code(run.wait(), 128 + number)
                self.assertEqual(self.started_workers(), [])

    @row(
        58,
        "two c10d nodes, --local-addr 127.0.0.2 (first, nproc 2, role a) and 127.0.0.1 (role b) -> "
        "GROUP_RANK 1 and 0, ranks 1, 2 and 0; ROLE_WORLD_SIZE 2 and 1; one MASTER_ADDR, 127.0.0.1",
        "different: places are in the order of joining, the host's first, not in that of the "
        "addresses as text; MASTER_ADDR is the host's",
    )
    def test_ranks_and_roles(self):
        words = ("--nproc-per-node", 2, "--role", "a")
        first = self.node("first", *words, address="127.0.0.2")
        self.wait_for_port()
        second = self.node("second", "--role", "b")
        on = [self.env_of_worker("first", rank) for rank in (0, 1)]
        on.append(self.env_of_worker("second", 2))
        names = ("GROUP_RANK", "RANK", "WORLD_SIZE", "ROLE_RANK", "ROLE_WORLD_SIZE", "ROLE_NAME")
        self.assertEqual([env[names[0]] for env in on], ["0", "0", "1"])
        self.assertEqual({env["WORLD_SIZE"] for env in on}, {"3"})
        self.assertEqual([env["ROLE_WORLD_SIZE"] for env in on], ["2", "2", "1"])
        self.assertEqual([env["ROLE_RANK"] for env in on], ["0", "1", "0"])
        self.assertEqual([env["ROLE_NAME"] for env in on], ["a", "a", "b"])
        self.assertEqual({env["MASTER_ADDR"] for env in on}, {"127.0.0.2"})
        self.assertEqual(len({env["MASTER_PORT"] for env in on}), 1)
        self.finish(first, second)

    def finish(self, *runs):
        self.tell("all", 0)
        for run in runs:
            self.assert_code(run.wait(), 0)

    @row(
        59,
        "--nnodes 1:2 last_call_timeout=3: alone -> starts after 3 s with one node; a second node "
        "within 3 s -> starts at once with two",
    )
    def test_last_call(self):
        conf = ["last_call_timeout=3"]
        before = time.monotonic()
        alone = self.node("alone", nnodes="1:2", conf=conf)
        self.assertEqual(self.env_of_worker("alone", 0)["GROUP_WORLD_SIZE"], "1")
        self.assertGreater(time.monotonic() - before, 2.9)
        self.finish(alone)
        os.remove(self.path("do.all"))

        self.port = free_port()
        conf = ["last_call_timeout=60"]
        before = time.monotonic()
        runs = [self.node(name, nnodes="1:2", conf=conf) for name in ("a", "b")]
        wait_until(lambda: len(self.started_workers()) == 3, "both run")
        self.assertLess(time.monotonic() - before, 50)
        self.finish(*runs)

    @row(
        60,
        "c10d, a worker on node B fails, both --max-restarts 1 -> A's worker gets SIGTERM and "
        "restarts with RESTART_COUNT 0, B's with 1",
        "different: one budget for the job, so that both restart with 1",
    )
    def test_failure_on_one_node(self):
        a = self.node("a", "--max-restarts", 1)
        self.wait_for_port()
        b = self.node("b", "--max-restarts", 1)
        self.env_of_worker("a", 0)
        self.env_of_worker("b", 1)
        self.tell("b.1.0", 3)
        self.env_of_worker("a", 0, restarts=1)
        self.env_of_worker("b", 1, restarts=1)
        self.assertEqual(self.file("term.a"), "0\n")
        self.finish(a, b)

    @row(
        61,
        "running 1:2 job, a second node joins, or a killed node is replaced -> should run with "
        "equal MASTER_ADDR and MASTER_PORT; fails or differs, attempt_0 is wiped",
        "different: it does what it should",
    )
    def test_late_node(self):
        conf = ["last_call_timeout=1"]
        a = self.node("a", nnodes="1:2", conf=conf)
        alone = self.env_of_worker("a", 0)
        self.assertEqual(alone["WORLD_SIZE"], "1")
        os.remove(self.path("env.a.0.0"))
        for name, others in (("b", "c"), ("c", None)):
            run = self.node(name, nnodes="1:2", conf=conf, address="127.0.0.2")
            on_a, on_it = self.env_of_worker("a", 0), self.env_of_worker(name, 1)
            self.assertEqual((on_a["WORLD_SIZE"], on_it["WORLD_SIZE"]), ("2", "2"))
            for key in ("MASTER_ADDR", "MASTER_PORT"):
                self.assertEqual({on_a[key], on_it[key]}, {alone[key]})
            if others is None:
                break
            os.remove(self.path("env.a.0.0"))
            self.muster_was_killed = True
            run.process.kill()
            run.wait()
            self.assertEqual(self.env_of_worker("a", 0)["WORLD_SIZE"], "1")
            os.remove(self.path("env.a.0.0"))
        self.assertTrue(
            os.path.isdir(os.path.join(self.run_folder(self.path("logs.a")), "attempt_0"))
        )
        self.finish(a, run)

    @row(
        62,
        "the node that hosts the store is killed -> the other stops its workers (SIGTERM) and exits "
        "1 within about a second",
    )
    def test_killed_host(self):
        a = self.node("a")
        self.wait_for_port()
        b = self.node("b")
        ranks = {name: wait_until(lambda n=name: self.rank_on(n), name) for name in ("a", "b")}
        env = self.env_of_worker("b", ranks["b"])
        self.muster_was_killed = True
        os.kill(a.pid, signal.SIGKILL)
        a.wait()
        before = time.monotonic()
        self.assert_code(b.wait(), 1)
        self.assertLess(time.monotonic() - before, AT_ONCE)
        self.assertFalse(alive(int(env["PID"])))
        self.assertEqual(self.file("term.b"), ranks["b"] + "\n")
        self.tell("all", 0)  # a killed torchrun leaves its workers

    def rank_on(self, name):
        for file in self.started_workers():
            if file.startswith(f"env.{name}."):
                return file.split(".")[2]
        return None

    @row(
        63,
        "third node in a full 2-node job -> waits; when the job ends it exits 1 with an "
        "AttributeError",
        "different: it is a spare, takes over if a node is lost, and goes home with 0",
    )
    def test_third_node(self):
        runs = [self.node("a")]
        self.wait_for_port()
        runs.append(self.node("b"))
        self.env_of_worker("b", 1)
        runs.append(self.node("c"))
        runs[-1].wait_for_message("spare")
        self.finish(*runs)
        self.assertEqual(len(self.started_workers()), 2)

    @row(
        68,
        "node A done at 1 s, B at 4 s -> both exit 0 together after B is done (its key "
        "num_members in the store apart)",
    )
    def test_exit_barrier(self):
        a = self.node("a")
        self.wait_for_port()
        b = self.node("b")
        ranks = {name: wait_until(lambda n=name: self.rank_on(n), name) for name in ("a", "b")}
        self.tell(f"a.{ranks['a']}.0", 0)
        time.sleep(3)
        self.assertIsNone(a.process.poll())
        self.finish(a, b)

    @row(
        69,
        "A done, B's worker fails -> B exits 1 at once; A waits 300 s, then 0. SIGTERM to A while "
        "it waits -> acted on only when the barrier ends, exit 1",
        "different: the job failed, on every node at once; a signal is acted on at once",
    )
    def test_late_failure(self):
        for ends in ("failure", "signal"):
            with self.subTest(ends=ends):
                self.port = free_port()
                for name in self.started_workers():
                    os.remove(self.path(name))
                a = self.node("a")
                self.wait_for_port()
                b = self.node("b")
                self.env_of_worker("a", 0)
                self.env_of_worker("b", 1)
                self.tell("a.0.0", 0)
                time.sleep(1)
                before = time.monotonic()
                if ends == "failure":
                    self.tell("b.1.0", 7)
                else:
                    a.signal(signal.SIGTERM)
                for run in (a, b):
                    self.assert_code(run.wait(), 7 if ends == "failure" else 143)
                self.assertLess(time.monotonic() - before, AT_ONCE)
                for name in ("do.a.0.0", "do.b.1.0"):
                    if os.path.exists(self.path(name)):
                        os.remove(self.path(name))


if __name__ == "__main__":
    harness.main()
