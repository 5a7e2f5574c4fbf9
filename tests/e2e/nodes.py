# SPDX-License-Identifier: Apache-2.0
"""Jobs of several nodes on one machine: agents, their records, and what may come between them.

A NodesTest starts agents, each with a name, a host name and a run folder of its own, on loopback
or, in netns.py, in network namespaces. The workers are helpers (tests/helpers/node_worker.cc) that
show their environment, do what they are told, and tell on any other attempt that runs beside
theirs. After each test no process and no such report may be left.
"""

import contextlib
import json
import os
import select
import signal
import socket
import struct
import threading
import time

import harness
import invariants
from harness import MUSTER, MusterTest, read, wait_until

WORKER = os.path.join(os.environ.get("MUSTER_BUILD", ""), "tests", "helpers", "node_worker")
# What a stop, a restart or an end may take here, in seconds: two busy cores, sanitizers.
SOON = 15.0
# Heartbeats at the default settings give a silent peer up after 3 s.
SILENCE = 3.0


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


class Node:
    """One agent: its muster, its record, its workers."""

    def __init__(self, test, name, run):
        self.test = test
        self.name = name
        self.run = run

    # -- its record -------------------------------------------------------------------------------

    @property
    def run_folder(self):
        logs = self.test.path("logs." + self.name)
        names = os.listdir(logs) if os.path.isdir(logs) else []
        names = [name for name in names if name != "latest"]
        assert len(names) <= 1, names
        return os.path.join(logs, names[0]) if names else None

    def events(self, kind=None, **wanted):
        """The events so far, those of a kind and with these values only."""
        folder = self.run_folder
        # The last line may not be whole yet, or ever, after a kill.
        lines = read(os.path.join(folder, "events.jsonl")).split(b"\n")[:-1] if folder else []
        found = [json.loads(line) for line in lines]
        return [
            event
            for event in found
            if kind in (None, event["event"])
            and all(event.get(key) == value for key, value in wanted.items())
        ]

    def wait_for_event(self, kind, seconds=SOON, **wanted):
        what = f"{self.name} records {kind} {wanted}"
        try:
            return wait_until(lambda: self.events(kind, **wanted), what, seconds)[-1]
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.story()}") from None

    @property
    def summary(self):
        return json.loads(read(os.path.join(self.run_folder, "summary.json")))

    def story(self):
        return f"--- {self.name}: exit {self.run.process.poll()}\n{self.run.err}\n{self.run.out}"

    # -- its processes ----------------------------------------------------------------------------

    @property
    def supervisor(self):
        found = harness.children(self.run.pid)
        return found[0] if found else None

    def freeze(self):
        """Stops both halves, as the worst case of a host that hangs: its workers run on."""
        self.test.frozen_nodes.add(self.name)
        self.frozen = [pid for pid in (self.run.pid, self.supervisor) if pid]
        for pid in self.frozen:
            os.kill(pid, signal.SIGSTOP)

    def thaw(self):
        for pid in self.frozen:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def kill(self, what="both"):
        """The whole agent, so that nobody can say goodbye, or its front or supervisor alone."""
        self.test.muster_was_killed = True
        self.test.gone_nodes.add(self.name)
        pids = {"supervisor": self.supervisor, "front": self.run.pid}
        for pid in [pid for half, pid in pids.items() if what in ("both", half) and pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def signal(self, number):
        self.run.signal(number)

    # -- its workers ------------------------------------------------------------------------------

    def seen(self):
        """Environments of all workers that ever ran here, {pid: {...}}."""
        found = {}
        folder = self.test.path("seen")
        for name in os.listdir(folder):
            if name.startswith(self.name + ".") and name.rpartition(".")[2].isdigit():
                lines = read(os.path.join(folder, name)).decode().splitlines()
                pairs = [line.partition("=") for line in lines]
                found[int(name.rpartition(".")[2])] = {key: value for key, _, value in pairs}
        return found

    def living(self):
        """The same of those that run now, by local rank."""
        alive = {pid: env for pid, env in self.seen().items() if harness.alive(pid)}
        return {int(env["LOCAL_RANK"]): {**env, "PID": str(pid)} for pid, env in alive.items()}

    def wait_for_workers(self, count=1, attempt=None, seconds=SOON, **wanted):
        """Waits until that many workers run, all with these variables; returns environments."""
        if attempt is not None:
            wanted["ATTEMPT"] = str(attempt)

        def ready():
            living = self.living()
            for env in living.values():
                env["ATTEMPT"] = attempt_of(env)
                if any(env.get(key) != str(value) for key, value in wanted.items()):
                    return None
            return living if len(living) == count else None

        try:
            return wait_until(ready, f"{count} workers run on {self.name} {wanted}", seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}; now {self.living()}\n{self.story()}") from None

    def wait_for_no_workers(self, seconds=SOON):
        try:
            wait_until(lambda: not self.living(), f"no worker runs on {self.name}", seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.story()}") from None


def attempt_of(env):
    return env["TORCHELASTIC_ERROR_FILE"].partition("/attempt_")[2].partition("/")[0]


class NodesTest(MusterTest):
    def setUp(self):
        super().setUp()
        for name in ("seen", "do", "worlds"):
            os.mkdir(self.path(name))
        self.addCleanup(self._check_worlds)
        self.port = free_port()
        self.nodes = {}
        self.frozen_nodes = set()  # two worlds may overlap there: nobody can stop their workers
        self.gone_nodes = set()  # killed or cut off: their workers' ends may not be recorded

    def fresh(self):
        """In a test of several jobs, before each: looks for leftovers of the one before."""
        if self.nodes:
            self.doCleanups()
            self.setUp()

    # -- starting ---------------------------------------------------------------------------------

    def agent_options(self, name, nnodes, conf):
        settings = {"last_call_timeout": 1, **(conf or {})}
        return [
            *("--nnodes", nnodes, "--rdzv-backend", "c10d", "--rdzv-id", "job"),
            *("--rdzv-conf", ",".join(f"{key}={value}" for key, value in settings.items())),
            *("--log-dir", self.path("logs." + name)),
        ]

    def agent(
        self,
        name,
        *options,
        nnodes=2,
        workers=1,
        endpoint=None,
        conf=None,
        worker=(WORKER,),
        env=None,
        prefix=None,
    ):
        """Starts the agent of node `name`; on loopback all share one endpoint."""
        endpoint = endpoint if endpoint is not None else f"127.0.0.1:{self.port}"
        words = [
            *self.agent_options(name, nnodes, conf),
            *("--rdzv-endpoint", endpoint, "--nproc-per-node", workers),
            *options,
            "--no-python",
            *worker,
        ]
        prefix = prefix if prefix is not None else self.as_host(name)
        run = self.start(*words, command=[*prefix, MUSTER], env={"NODE": name, **(env or {})})
        self.nodes[name] = Node(self, name, run)
        return self.nodes[name]

    def as_host(self, name):
        """What gives a command its own host name, where that is possible."""
        if os.geteuid() != 0:
            return []
        script = 'echo "$0" >/proc/sys/kernel/hostname && exec "$@"'
        return ["unshare", "--uts", "sh", "-c", script, name]

    def pair(self, *options, **rest):
        """Two nodes, a first: the host."""
        a = self.agent("a", *options, **rest)
        self.wait_for_host(a)
        return a, self.agent("b", *options, **rest)

    def running_pair(self, *options, workers=1, **rest):
        a, b = self.pair(*options, workers=workers, **rest)
        for node in (a, b):
            node.wait_for_workers(workers)
        return a, b

    def wait_for_host(self, node):
        """Waits until it holds the endpoint, so that it is the coordinator's."""
        node.wait_for_event("node_joined")

    # -- telling ----------------------------------------------------------------------------------

    def tell(self, node, order, local_rank=0):
        name = node if isinstance(node, str) else node.name
        path = self.path("do", name if name == "all" else f"{name}.{local_rank}")
        with open(path + ".new", "w") as file:
            file.write(order + "\n")
        os.rename(path + ".new", path)

    def finish(self):
        """Every worker, also one that starts later, exits 0."""
        self.tell("all", "exit 0")

    def assert_reunited(self, *members):
        """All run again in one world. Whether the others ran without them in between is a matter
        of milliseconds."""

        def worlds():
            living = [env for node in members for env in node.living().values()]
            if len(living) != len(members):
                return None
            return {(attempt_of(env), env["WORLD_SIZE"]) for env in living}

        def together():
            found = worlds()
            if not found or len(found) != 1:
                return False
            [(attempt, size)] = found
            return attempt != "0" and size == str(len(members))

        try:
            wait_until(together, "all are together again", 2 * SOON)
        except AssertionError as error:
            stories = "\n".join(node.story() for node in members)
            raise AssertionError(f"{error}\n{stories}") from None

    def finish_all(self, *members):
        self.finish()
        self.wait_for_end(members, 0)

    def signals(self):
        """What the workers were sent: (time, node, rank, pid, signal)."""
        words = [line.split() for line in self.file("signals").splitlines()]
        return [
            (float(when), node, int(rank), int(pid), int(number))
            for when, node, rank, pid, number in words
        ]

    # -- looking ----------------------------------------------------------------------------------

    def wait_for_end(self, nodes, code, seconds=harness.PATIENCE):
        """All these agents end, each with this exit code."""
        for node in nodes:
            node.run.wait(seconds)
        codes = {node.name: node.run.code for node in nodes}
        self.assertEqual(
            codes,
            {node.name: code for node in nodes},
            "\n".join(node.story() for node in nodes),
        )

    def assert_same_cause(self, nodes, host, rank):
        """Each summary.json names this culprit."""
        for node in nodes:
            cause = node.summary["root_cause"]
            self.assertIsNotNone(cause, node.story())
            found = (cause["rank"], cause["host"])
            self.assertEqual(found, (rank, self.host_name(host)), node.name)
        first = nodes[0].summary["root_cause"]
        for node in nodes[1:]:
            other = node.summary["root_cause"]
            for key in ("kind", "pid", "exit_code", "attempt", "message"):
                self.assertEqual(other[key], first[key], key)

    def host_name(self, name):
        return name if os.geteuid() == 0 else socket.gethostname()

    # -- afterwards -------------------------------------------------------------------------------

    def violations(self):
        """Attempts that ran beside each other, but for nodes that nobody could reach."""
        found = []
        for line in self.file("violations").splitlines():
            _, mine, _, other = line.split()
            nodes = {mine.partition(".")[2], other.partition(".")[2]}
            if not nodes & self.frozen_nodes:
                found.append(line)
        return found

    def broken_promises(self):
        records = {name: node.events() for name, node in self.nodes.items()}
        records = {name: events for name, events in records.items() if events}
        return invariants.check(records, self.frozen_nodes | self.gone_nodes)

    def _check_worlds(self):
        self.assertEqual(self.violations(), [], "two worlds at once")
        self.assertEqual(self.broken_promises(), [])


class StorePeek:
    """A client of the workers' store: just enough of PyTorch's protocol to look into it."""

    VALIDATE, SET, GET, CHECK, PING = 0, 1, 3, 5, 13
    MAGIC = 0x3C85F7CE

    def __init__(self, port, host="127.0.0.1", source=None):
        self.socket = socket.create_connection((host, port), 10, source and (source, 0))
        greeting = struct.pack("<BIBI", self.VALIDATE, self.MAGIC, self.PING, 7)
        self.socket.sendall(greeting)
        assert self._take(4) == struct.pack("<I", 7)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def _take(self, count):
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise ConnectionError("the store closed the connection")
            data += more
        return data

    @staticmethod
    def _text(value):
        return struct.pack("<Q", len(value)) + value.encode()

    def set(self, key, value):
        self.socket.sendall(bytes([self.SET]) + self._text("/" + key) + self._text(value))

    def has(self, key):
        request = bytes([self.CHECK]) + struct.pack("<Q", 1) + self._text("/" + key)
        self.socket.sendall(request)
        return self._take(1) == b"\0"

    def get(self, key):
        self.socket.sendall(bytes([self.GET]) + self._text("/" + key))
        (length,) = struct.unpack("<Q", self._take(8))
        return self._take(length).decode()

    def closed(self):
        """True once the server has closed this connection."""
        readable, _, _ = select.select([self.socket], [], [], 0)
        if not readable:
            return False
        try:
            return self.socket.recv(1, socket.MSG_PEEK) == b""
        except ConnectionResetError:
            return True


class Relay:
    """A TCP relay in a thread of its own, between an agent and its endpoint. It can hold the bytes
    of one direction or of both back, delay them, and cut."""

    UP, DOWN = 0, 1  # from the agent; to the agent

    def __init__(self, target, host="127.0.0.1"):
        self.target = target
        self.listener = socket.create_server((host, 0))
        self.port = self.listener.getsockname()[1]
        self.delay = 0.0
        self.held = [False, False]
        self.pairs = []
        self.waker, self.woken = socket.socketpair()
        self.ended = False
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ended = True
        self.waker.send(b"x")
        self.thread.join()
        for one in [self.listener, self.waker, self.woken, *sum(self.pairs, ())]:
            one.close()

    def hold(self, *directions):
        """Bytes of these directions stay where they are; hold() lets all go."""
        self.held = [self.UP in directions, self.DOWN in directions]
        self.waker.send(b"x")

    def cut(self):
        """Closes every connection; new ones are taken again."""
        for pair in list(self.pairs):
            for one in pair:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def _serve(self):
        pending = []  # (when, socket, bytes), in order
        while not self.ended:
            sources = {}
            for pair in self.pairs:
                for direction in (self.UP, self.DOWN):
                    if not self.held[direction]:
                        sources[pair[direction]] = pair
            wait = max(0, pending[0][0] - time.monotonic()) if pending else None
            ready, _, _ = select.select([self.listener, self.woken, *sources], [], [], wait)
            for one in ready:
                if one is self.woken:
                    one.recv(64)
                elif one is self.listener:
                    self._take()
                elif sources[one] in self.pairs:
                    self._carry(one, sources[one], pending)
            while pending and pending[0][0] <= time.monotonic():
                _, to, data = pending.pop(0)
                with contextlib.suppress(OSError):
                    to.sendall(data)

    def _take(self):
        client, _ = self.listener.accept()
        try:
            self.pairs.append((client, socket.create_connection(self.target, 5)))
        except OSError:
            client.close()

    def _carry(self, one, pair, pending):
        try:
            data = one.recv(65536)
        except OSError:
            data = b""
        if data:
            pending.append((time.monotonic() + self.delay, pair[1 - pair.index(one)], data))
            return
        self.pairs.remove(pair)
        for end in pair:
            end.close()
