# SPDX-License-Identifier: Apache-2.0
"""How nodes become a job: in any order, with the ranks that the numbers of their workers give, and
never with somebody who does not belong to them."""

import contextlib
import os
import random
import socket
import threading
import time

import harness
import nodes
from harness import wait_until
from nodes import SOON, NodesTest, Relay, StorePeek

SECRET = "correct horse battery staple"
SAME_EVERYWHERE = (
    "WORLD_SIZE",
    "GROUP_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TORCHELASTIC_RUN_ID",
    "TORCHELASTIC_RESTART_COUNT",
    "TORCHELASTIC_MAX_RESTARTS",
)


class Meeting(NodesTest):
    def numbers(self, env, *names):
        return tuple(int(env[name]) for name in names)

    # -- order ------------------------------------------------------------------------------------

    def test_two_nodes_are_one_job(self):
        a, b = self.pair(workers=2)
        on_a, on_b = a.wait_for_workers(2), b.wait_for_workers(2)
        for local_rank in (0, 1):
            for name in SAME_EVERYWHERE:
                self.assertEqual(on_a[local_rank][name], on_b[local_rank][name], name)
        found = [self.numbers(env, "RANK", "GROUP_RANK") for env in (on_a[0], on_a[1], on_b[0])]
        self.assertEqual(found, [(0, 0), (1, 0), (2, 1)])
        self.assertEqual(on_a[0]["WORLD_SIZE"], "4")
        self.assertEqual(on_a[0]["TORCHELASTIC_RUN_ID"], "job")
        self.finish_all(a, b)
        for node in (a, b):
            self.assertEqual(node.summary["outcome"], "succeeded")
            self.assertEqual(node.summary["world_size"], 4)

    def test_the_host_may_come_last(self):
        b = self.agent("b", conf={"is_host": "false"})
        b.run.wait_for_message("refused")
        self.assertEqual(b.seen(), {})
        a = self.agent("a", conf={"is_host": "true"})
        self.assertEqual(a.wait_for_workers()[0]["GROUP_RANK"], "0")
        self.assertEqual(b.wait_for_workers()[0]["GROUP_RANK"], "1")
        self.finish_all(a, b)

    def test_who_waits_says_for_whom(self):
        a = self.agent("a", nnodes=3, workers=2)
        a.run.wait_for_message("1 of 3 nodes")
        b = self.agent("b", nnodes=3, workers=2)
        for node in (a, b):
            node.run.wait_for_message("2 of 3 nodes")
            self.assertRegex(node.run.err, r"2 of 3 nodes: have .* \(2\), .* \(2\)")
            self.assertRegex(node.run.err, r"waiting for 1 more, \d+:\d\d left")
        c = self.agent("c", nnodes=3, workers=2)
        for node in (a, b, c):
            node.wait_for_workers(2)
        self.finish()
        self.wait_for_end([a, b, c], 0)

    def test_workers_run_at_once_when_the_last_node_is_here(self):
        a, b = self.pair()
        last = a.wait_for_event("attempt_started")
        a.wait_for_workers()
        b.wait_for_workers()
        joined = a.events("node_joined")[-1]
        # torchrun polls once a second; ours is a matter of milliseconds.
        self.assertLess(last["mono_us"] - joined["mono_us"], 400_000)
        self.finish_all(a, b)

    def test_a_second_node_on_the_same_machine_is_nothing_to_worry_about(self):
        a, b = self.pair()
        b.wait_for_workers()
        self.finish_all(a, b)
        self.assertNotRegex(b.run.err.lower(), "in use|error|failed|refused")

    # -- ranks ------------------------------------------------------------------------------------

    def test_uneven_nodes_and_roles(self):
        a = self.agent("a", "--role", "trainer", workers=4)
        self.wait_for_host(a)
        b = self.agent("b", "--role", "reader", workers=2)
        on_a, on_b = a.wait_for_workers(4), b.wait_for_workers(2)
        names = ("RANK", "LOCAL_RANK", "ROLE_RANK", "ROLE_WORLD_SIZE", "LOCAL_WORLD_SIZE")
        found = [self.numbers(on_a[local], *names) for local in range(4)]
        self.assertEqual(found, [(rank, rank, rank, 4, 4) for rank in range(4)])
        found = [self.numbers(on_b[local], *names) for local in range(2)]
        self.assertEqual(found, [(4, 0, 0, 2, 2), (5, 1, 1, 2, 2)])
        self.assertEqual({env["WORLD_SIZE"] for env in [*on_a.values(), *on_b.values()]}, {"6"})
        self.assertEqual((on_a[0]["ROLE_NAME"], on_b[0]["ROLE_NAME"]), ("trainer", "reader"))
        self.finish_all(a, b)
        self.assertRegex(a.run.err, "(?i)uneven|different number|4.*2")

    def test_one_role_has_its_ranks_across_uneven_nodes(self):
        a = self.agent("a", workers=1)
        self.wait_for_host(a)
        b = self.agent("b", workers=3)
        on_b = b.wait_for_workers(3)
        self.assertEqual(self.numbers(on_b[2], "RANK", "ROLE_RANK", "ROLE_WORLD_SIZE"), (3, 3, 4))
        self.finish_all(a, b)

    def test_node_ranks_are_honoured_if_every_node_has_one(self):
        a = self.agent("a", "--node-rank", 1)
        self.wait_for_host(a)
        b = self.agent("b", "--node-rank", 0)
        self.assertEqual(b.wait_for_workers()[0]["RANK"], "0")
        self.assertEqual(a.wait_for_workers()[0]["RANK"], "1")
        self.finish_all(a, b)

    def test_a_node_rank_is_there_once(self):
        a = self.agent("a", "--node-rank", 1)
        self.wait_for_host(a)
        b = self.agent("b", "--node-rank", 1)
        self.assertNotEqual(b.run.wait().code, 0)
        self.assertRegex(b.run.err, "node.rank 1")
        c = self.agent("c", "--node-rank", 0)
        c.wait_for_workers()
        self.finish_all(a, c)

    def test_static_nodes_have_the_ranks_they_were_given(self):
        words = ("--master-addr", "127.0.0.1", "--master-port", self.port)
        b = self.static("b", 1, *words)
        a = self.static("a", 0, *words)
        on_a, on_b = a.wait_for_workers()[0], b.wait_for_workers()[0]
        self.assertEqual((on_a["RANK"], on_b["RANK"]), ("0", "1"))
        for env in (on_a, on_b):
            self.assertEqual(
                (env["MASTER_ADDR"], env["MASTER_PORT"]), ("127.0.0.1", str(self.port))
            )
        self.finish_all(a, b)

    def static(self, name, rank, *words, nnodes=2, **options):
        """A node of a static job."""
        command = ("--nnodes", nnodes, "--node-rank", rank, "--log-dir", self.path("logs." + name))
        prefix = self.as_host(name)
        run = self.start(
            *command,
            *words,
            "--no-python",
            nodes.WORKER,
            command=[*prefix, harness.MUSTER],
            env={"NODE": name},
            **options,
        )
        self.nodes[name] = nodes.Node(self, name, run)
        return self.nodes[name]

    def test_a_failure_restarts_every_static_node(self):
        words = ("--master-port", self.port, "--max-restarts", 1)
        a, b = self.static("a", 0, *words), self.static("b", 1, *words)
        for node in (a, b):
            node.wait_for_workers()
        self.tell(b, "exit 4")
        for node in (a, b):
            node.wait_for_workers(attempt=1, TORCHELASTIC_RESTART_COUNT=1)
        self.finish_all(a, b)

    # -- who does not belong ----------------------------------------------------------------------

    def assert_job_unharmed(self, a):
        """The host goes on as if nothing had been: b comes, both run, both end with 0."""
        b = self.agent("b")
        a.wait_for_workers()
        b.wait_for_workers()
        self.finish_all(a, b)

    def test_another_run_id_is_told_so_at_once(self):
        a = self.agent("a")
        self.wait_for_host(a)
        other = self.agent("other", "--rdzv-id", "something-else", conf={"join_timeout": 5})
        other.run.wait_for_message("something-else")
        wait_until(lambda: "run id" in other.run.err.lower(), "it names the run id", SOON)
        self.assertNotEqual(other.run.wait().code, 0)
        self.assertEqual(other.seen(), {})
        self.assert_job_unharmed(a)

    def test_options_that_must_agree_are_compared(self):
        a = self.agent("a", "--max-restarts", 2)
        self.wait_for_host(a)
        other = self.agent("other", "--max-restarts", 3)
        self.assertNotEqual(other.run.wait().code, 0)
        self.assertRegex(other.run.err, r"max.restarts")
        self.assertIn("2", other.run.err)
        b = self.agent("b", "--max-restarts", 2)
        b.wait_for_workers()
        self.finish_all(a, b)

    def test_other_numbers_of_nodes_are_refused(self):
        a = self.agent("a")
        self.wait_for_host(a)
        other = self.agent("other", nnodes=3)
        self.assertNotEqual(other.run.wait().code, 0)
        self.assertIn("nnodes", other.run.err)
        self.assert_job_unharmed(a)

    def test_somebody_elses_port_is_named_as_such(self):
        """A web server, and one that never says a word: neither hangs us."""
        for reply in (b"HTTP/1.1 400 Bad Request\r\n\r\n", None):
            with self.subTest(reply=reply), socket.create_server(("127.0.0.1", 0)) as server:
                thread = threading.Thread(target=self.answer, args=(server, reply), daemon=True)
                thread.start()
                name = "b" if reply else "c"
                conf = {"join_timeout": 3, "read_timeout": 1, "is_host": "false"}
                endpoint = f"127.0.0.1:{server.getsockname()[1]}"
                b = self.agent(name, endpoint=endpoint, conf=conf)
                self.assertEqual(b.run.wait().code, 1, b.story())
                self.assertRegex(b.run.err, "(?i)protocol|not muster|no answer")
                self.assertIn(endpoint.partition(":")[2], b.run.err)

    def answer(self, server, reply):
        taken = []
        with contextlib.suppress(OSError):
            while True:
                client, _ = server.accept()
                taken.append(client)
                if reply:
                    client.recv(100)
                    client.sendall(reply)
                    client.close()

    def test_tokens(self):
        a = self.agent("a", env={"MUSTER_TOKEN": SECRET})
        self.wait_for_host(a)
        for name, token in (("wrong", "guessed" * 9), ("missing", None)):
            other = self.agent(name, env={"MUSTER_TOKEN": token}, conf={"join_timeout": 5})
            self.assertNotEqual(other.run.wait().code, 0, name)
            self.assertRegex(other.run.err.lower(), "token")
            for text in (a.run.err, other.run.err):
                self.assertNotIn(SECRET, text)
        with open(self.path("token"), "w") as file:
            file.write(SECRET + "\n")
        os.chmod(self.path("token"), 0o600)
        b = self.agent("b", "--token-file", self.path("token"))
        for node in (a, b):
            env = node.wait_for_workers()[0]
            self.assertNotIn(SECRET, env.values(), "a worker needs no token")
        self.finish_all(a, b)

    def test_a_token_at_the_joiner_alone_is_said(self):
        a = self.agent("a")
        self.wait_for_host(a)
        other = self.agent("other", env={"MUSTER_TOKEN": "lonely" * 9}, conf={"join_timeout": 5})
        self.assertNotEqual(other.run.wait().code, 0)
        self.assertRegex(other.run.err.lower(), "token")
        self.assert_job_unharmed(a)

    def test_a_hostile_peer_harms_nobody(self):
        a = self.agent("a")
        self.wait_for_host(a)
        seed = int(os.environ.get("MUSTER_SEED", random.randrange(1 << 32)))
        print("seed", seed, flush=True)
        self.assault(random.Random(seed))
        b = self.agent("b")
        a.wait_for_workers()
        b.wait_for_workers()
        self.assault(random.Random(seed + 1))
        self.assertEqual(len(a.seen()) + len(b.seen()), 2, "nobody was restarted")
        self.finish_all(a, b)
        self.assertLess(len(a.run.err.splitlines()), 60, "the console is not flooded")

    def assault(self, chance):
        kept = []  # half-open ones, some in the middle of a frame
        for number in range(200):
            peer = socket.create_connection(("127.0.0.1", self.port), 10)
            start = chance.choice([b"", b"M", b"MUSTER1\n", b"GET / HTTP/1.1\r\n", b"\0"])
            size = chance.choice([0, 1, 4, 5, 100, 5000])
            body = chance.choice([chance.randbytes(size), b"\xff" * size, b"\0" * size])
            with contextlib.suppress(OSError):
                peer.sendall(start + body)
            if number % 4 == 0:
                kept.append(peer)
            else:
                peer.close()
        with contextlib.suppress(OSError):  # more than any frame may have
            flood = socket.create_connection(("127.0.0.1", self.port), 10)
            flood.settimeout(5)
            kept.append(flood)
            flood.sendall(b"MUSTER1\n" + b"\xff\xff\xff\x7f\x01" + bytes(8 << 20))
        for peer in kept:
            peer.close()

    # -- the way between them ---------------------------------------------------------------------

    def test_a_slow_way_is_a_way(self):
        a = self.agent("a", conf={"is_host": "true"})
        self.wait_for_host(a)
        with Relay(("127.0.0.1", self.port)) as relay:
            relay.delay = 0.4
            endpoint = f"127.0.0.1:{relay.port}"
            b = self.agent("b", endpoint=endpoint, conf={"is_host": "false"})
            a.wait_for_workers()
            env = b.wait_for_workers()[0]
            self.assertEqual(env["MASTER_PORT"], str(self.port))
            self.finish()
            self.wait_for_end([a, b], 0)

    # -- the store --------------------------------------------------------------------------------

    def test_each_attempt_has_an_empty_store_at_the_same_place(self):
        a, b = self.pair("--max-restarts", 1)
        before = a.wait_for_workers()[0]
        b.wait_for_workers()
        self.assertEqual(before["MASTER_PORT"], str(self.port))
        with StorePeek(self.port) as old:
            old.set("left/over", "1")
            wait_until(lambda: old.has("left/over"), "it is there", SOON)
            self.tell(b, "exit 1")
            after = [node.wait_for_workers(attempt=1)[0] for node in (a, b)]
            wait_until(old.closed, "connections of the old attempt are closed", SOON)
        with StorePeek(self.port) as new:
            self.assertFalse(new.has("left/over"))
        for env in after:
            for name in ("MASTER_ADDR", "MASTER_PORT"):
                self.assertEqual(env[name], before[name])
        self.finish_all(a, b)

    def test_one_port_is_open_and_only_where_it_must_be(self):
        a, b = self.running_pair("--http", "off")  # the page has its own, on loopback
        self.assertEqual(self.listens_at(a), [("0100007F", self.port)])  # 127.0.0.1
        self.assertEqual(self.listens_at(b), [])
        self.finish_all(a, b)

    def listens_at(self, node):
        """(address in hexadecimal, port) of the listening sockets of both its processes."""
        inodes = set()
        for pid in (node.run.pid, node.supervisor):
            for fd in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(FileNotFoundError):
                    inodes.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
        found = []
        for table in ("tcp", "tcp6"):
            for line in harness.read(f"/proc/net/{table}").decode().splitlines()[1:]:
                words = line.split()
                address, _, port = words[1].rpartition(":")
                if words[3] == "0A" and f"socket:[{words[9]}]" in inodes:
                    found.append((address, int(port, 16)))
        return found

    def test_a_loopback_endpoint_of_several_nodes_is_worth_a_warning(self):
        a = self.agent("a")
        a.run.wait_for_message("1 of 2 nodes")
        self.assertIn("on other machines", a.run.err)
        a.signal(15)
        self.assertEqual(a.run.wait().code, 143)

    def test_local_address_is_what_workers_get(self):
        a = self.agent("a", "--local-addr", "127.0.0.1", endpoint=f"localhost:{self.port}")
        self.wait_for_host(a)
        b = self.agent("b", "--local-addr", "127.0.0.2", endpoint=f"localhost:{self.port}")
        for node in (a, b):
            self.assertEqual(node.wait_for_workers()[0]["MASTER_ADDR"], "127.0.0.1")
        self.finish_all(a, b)


class Waiting(NodesTest):
    def test_join_timeout_ends_the_waiting(self):
        start = time.monotonic()
        a = self.agent("a", conf={"join_timeout": 2})
        self.assertEqual(a.run.wait().code, 1, a.story())
        self.assertGreater(time.monotonic() - start, 1.9)
        self.assertRegex(a.run.err, "1 of 2 nodes|join_timeout")
        self.assertEqual(a.summary["outcome"], "failed")
        self.assertEqual(a.seen(), {})

    def test_a_host_that_never_comes(self):
        b = self.agent("b", conf={"join_timeout": 2, "is_host": "false"})
        self.assertEqual(b.run.wait().code, 1, b.story())
        self.assertIn("refused", b.run.err)
        self.assertIn(str(self.port), b.run.err)

    def test_a_name_that_does_not_resolve(self):
        b = self.agent("b", endpoint=f"nowhere.invalid:{self.port}", conf={"join_timeout": 2})
        self.assertEqual(b.run.wait().code, 1, b.story())
        self.assertIn("nowhere.invalid", b.run.err)
        self.assertRegex(b.run.err, "resolve|name")

    def test_a_signal_ends_the_waiting_at_once(self):
        for number, code in ((15, 143), (2, 130)):
            with self.subTest(signal=number):
                a = self.agent(f"a{number}")
                a.run.wait_for_message("1 of 2 nodes")
                a.signal(number)
                self.assertEqual(a.run.wait(SOON).code, code, a.story())

    def test_a_signal_ends_the_search_for_the_host(self):
        b = self.agent("b", conf={"is_host": "false"})
        b.run.wait_for_message("refused")
        b.signal(15)
        self.assertEqual(b.run.wait(SOON).code, 143, b.story())

    def test_fewer_than_the_most_begin_after_the_last_call(self):
        start = time.monotonic()
        a = self.agent("a", nnodes="1:2", conf={"last_call_timeout": 2})
        env = a.wait_for_workers()[0]
        self.assertGreater(time.monotonic() - start, 1.9)
        self.assertEqual((env["WORLD_SIZE"], env["GROUP_WORLD_SIZE"]), ("1", "1"))
        self.finish()
        self.wait_for_end([a], 0)

    def test_with_the_most_nobody_waits_for_the_last_call(self):
        start = time.monotonic()
        a = self.agent("a", nnodes="1:2", conf={"last_call_timeout": 60})
        b = self.agent("b", nnodes="1:2", conf={"last_call_timeout": 60})
        for node in (a, b):
            self.assertEqual(node.wait_for_workers()[0]["WORLD_SIZE"], "2")
        self.assertLess(time.monotonic() - start, 30)
        self.finish_all(a, b)


if __name__ == "__main__":
    harness.main()
