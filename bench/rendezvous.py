# SPDX-License-Identifier: Apache-2.0
"""How fast many nodes become one job, hear of a failure and start again; what a node costs.

Real nodes: as many launcher processes with one worker each, all on this machine; the workers note
the times themselves (bench_worker.cc). Simulated nodes: one process (rendezvous/agents.cc) talks to
a real muster for all of them.
"""

import argparse
import contextlib
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import peers

AGENTS = os.path.join(peers.BUILD, "bench", "rendezvous", "agents")
MUSTER = peers.launchers()["muster"]
COLUMNS = ("muster", "torchrun 2.14", "torchrun 1.13")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class RealJob:
    """One launcher process per node. Ended with all that it started when it is left."""

    def __init__(self, command, nodes, restarts, limit):
        self.stamps = peers.Stamps(nodes, restarts + 1)
        self.logs = tempfile.mkdtemp(prefix="muster-bench-")
        self.processes = []
        self.limit = limit
        port = free_port()
        self.common = [
            *("--nnodes", nodes, "--nproc_per_node", 1, "--max_restarts", restarts),
            *("--rdzv_backend", "c10d", "--rdzv_endpoint", f"127.0.0.1:{port}"),
            *("--rdzv_id", f"bench{port}", "--monitor_interval", 0.1),
            # torchrun's defaults; muster's 1 s is for machines that are a node's own.
            *("--rdzv_conf", "keep_alive_interval=5,keep_alive_max_attempt=3"),
        ]
        self.worker = ["--no_python", peers.WORKER, self.stamps.name, nodes - 1]
        self.command = command
        self.nodes = nodes

    def __enter__(self):
        self.began = time.monotonic_ns()
        for node in range(self.nodes):
            log_dir = ["--log_dir", os.path.join(self.logs, str(node))]
            words = [*self.common, *log_dir, *self.worker]
            self.processes.append(peers.start(self.command, words, close_fds=False))
        return self

    def wait(self):
        deadline = time.monotonic() + self.limit
        for node, process in enumerate(self.processes):
            code = process.wait(max(0.1, deadline - time.monotonic()))
            if code != 0:
                raise OSError(f"{self.command[0]}: node {node} of {self.nodes} ended with {code}")

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                process.terminate()
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
        self.stamps.close()
        shutil.rmtree(self.logs, ignore_errors=True)


def all_running(command, nodes, limit):
    """Seconds from the first launcher's start to the last worker's."""
    with RealJob(command, nodes, 0, limit) as job:
        job.wait()
        return (max(job.stamps.began(0)) - job.began) / 1e9


def deaths(command, nodes, restarts, limit):
    with RealJob(command, nodes, restarts, limit) as job:
        job.wait()
        return job.stamps.after_deaths()


class Simulation:
    """A real muster, whose job needs `nodes` more, and the process that plays those."""

    def __init__(self, nodes):
        self.nodes = nodes
        self.logs = tempfile.mkdtemp(prefix="muster-bench-")

    def __enter__(self):
        port = free_port()
        words = [
            *("--nnodes", self.nodes + 1, "--nproc-per-node", 1, "--max-restarts", 1000),
            *("--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}"),
            # All nodes share two or so cores here: a late heartbeat is no lost node.
            *("--rdzv-conf", "keep_alive_interval=1,keep_alive_max_attempt=20"),
            *("--rdzv-id", "simulated", "--log-dir", self.logs, "--no-python", "/bin/sleep", 3600),
        ]
        self.console = open(os.path.join(self.logs, "console"), "w+")
        self.host = peers.start(MUSTER, words, stderr=self.console)
        self._wait_for(port)
        self.agents = subprocess.Popen(
            [AGENTS, str(port), "simulated", str(self.nodes), "1000"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.supervisor = peers.launcher_pids(self.host.pid)[-1]
        return self

    def _wait_for(self, port):
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            time.sleep(0.02)
        raise OSError("muster does not listen:\n" + self.said())

    def said(self):
        self.console.seek(0)
        return self.console.read()

    def order(self, command):
        print(command, file=self.agents.stdin, flush=True)

    def answer(self):
        line = self.agents.stdout.readline()
        if not line:
            raise OSError("the agents gave up; muster said:\n" + self.said()[-4000:])
        return json.loads(line)

    def do(self, command):
        """Also how much of a CPU's time the coordinator's process took for it."""
        before = self.cpu_ns()
        self.order(command)
        answer = self.answer()
        answer["cpu_ms"] = (self.cpu_ns() - before) / 1e6
        return answer

    def cpu_ns(self):
        with open(f"/proc/{self.supervisor}/schedstat") as file:
            return int(file.read().split()[0])

    def peak_mb(self):
        return peers.field(self.supervisor, "VmHWM") / 1024

    def end(self):
        """A stop signal at the host: all are told, and it leaves when all have said goodbye."""
        began = time.monotonic()
        self.order("stop")
        self.host.send_signal(signal.SIGTERM)
        self.answer()
        self.host.wait(60)
        return (time.monotonic() - began) * 1000

    def __exit__(self, *_):
        for process in (self.agents, self.host):
            if process.poll() is None:
                process.terminate()
            process.wait()
        self.agents.stdin.close()
        self.agents.stdout.close()
        self.console.close()
        shutil.rmtree(self.logs, ignore_errors=True)


def simulate(nodes, rounds, rest):
    with Simulation(nodes) as simulation:
        result = {"form": simulation.do("form")}
        simulation.do("rest 1 0")  # the record of the beginning is written
        result["rest"] = simulation.do(f"rest {rest} 0")
        # As often as they are asked while somebody looks.
        every = min(max(nodes, 2_000), 10_000)
        result["samples"] = simulation.do(f"rest {rest} {every}")
        result["samples"]["every"] = every / 1000
        result["fails"] = [simulation.do("fail") for _ in range(rounds)]
        result["peak_mb"] = simulation.peak_mb()
        result["end_ms"] = simulation.end()
    return result


class Verdicts:
    """Whether the targets were met, and the lines for the README's table."""

    def __init__(self):
        self.missed = 0
        self.rows = []

    def row(self, what, values, unit, digits):
        """values: launcher -> number."""
        cells = [f"{values[name]:.{digits}f} {unit}" if name in values else "" for name in COLUMNS]
        self.rows.append(f"| {what} | " + " | ".join(cells) + " |")

    def check(self, what, value, limit, unit):
        met = value <= limit
        self.missed += not met
        print(f"  target: {what} {limit:g} {unit}: {'met' if met else f'MISSED with {value:.2f}'}")
        sys.stdout.flush()


def torchrun_can(nodes, number, args):
    """Each of its nodes takes seconds of CPU time and hundreds of MB."""
    return nodes <= args.most_of_torchrun and number < (2 if nodes <= 8 else 1)


def medians(results):
    return {name: statistics.median(values) for name, values in results.items()}


def p99s(results):
    return {name: peers.percentile(values, 0.99) for name, values in results.items()}


def show_starts(args, verdicts):
    for nodes in args.sizes:
        times = {}
        for number in range(args.rounds):
            for name, command in args.launchers.items():
                if name != "muster" and not torchrun_can(nodes, number, args):
                    continue
                times.setdefault(name, []).append(all_running(command, nodes, args.limit))
        peers.show(f"{nodes} real nodes: start -> all workers running", "s", times)
        verdicts.row(f"{nodes:,} nodes: start -> all workers run", medians(times), "s", 2)


def show_deaths(args, verdicts):
    told, again = {}, {}
    for name, command in args.launchers.items():
        restarts = args.deaths if name == "muster" else max(2, args.deaths // 10)
        told[name], again[name] = deaths(command, args.death_nodes, restarts, args.limit)
    nodes = args.death_nodes
    peers.show(f"{nodes} real nodes: a worker's death -> SIGTERM at the last other", "ms", told)
    verdicts.check("p99", peers.percentile(told["muster"], 0.99), 50 * args.slack, "ms")
    peers.show(f"{nodes} real nodes: a worker's death -> all workers run again", "ms", again)
    verdicts.row(f"{nodes} nodes: a worker dies -> SIGTERM at the last, p99", p99s(told), "ms", 1)
    verdicts.row(f"{nodes} nodes: a worker dies -> all run again, p99", p99s(again), "ms", 0)
    nodes = args.restart_nodes
    _, again = deaths(MUSTER, nodes, args.restarts, args.limit)
    peers.show(f"{nodes} real nodes: a worker's death -> all run again", "ms", {"muster": again})
    verdicts.check("max", max(again), 1000 * args.slack, "ms")
    verdicts.row(f"{nodes} nodes: a worker dies -> all run again", {"muster": max(again)}, "ms", 0)


def show_simulated(nodes, result, args, verdicts):
    form, rest, fails = result["form"], result["rest"], result["fails"]
    print(f"\n{nodes} simulated nodes")
    print(
        f"  round formed in {form['ms']:.0f} ms, coordinator's CPU {form['cpu_ms']:.0f} ms"
        f" ({form['cpu_ms'] * 1000 / nodes:.0f} us a node), unanswered {form['unanswered']}"
    )
    stops = [fail["stops"] for fail in fails]
    restart = statistics.median(fail["ms"] for fail in fails)
    print(
        "  failure -> order to stop: "
        f"p50 {statistics.median(stop['p50'] for stop in stops):.2f} ms, "
        f"p99 {statistics.median(stop['p99'] for stop in stops):.2f} ms, "
        f"max {max(stop['max'] for stop in stops):.2f} ms; "
        f"-> all assigned again: median {restart:.0f} ms of {len(fails)}, "
        f"CPU {statistics.median(fail['cpu_ms'] for fail in fails):.0f} ms"
    )
    for name, what in (("round", form), ("restart", fails[-1])):
        print(
            f"  a node's {name}: {what['up']['messages']:.1f} messages, {what['up']['bytes']:.0f}"
            f" bytes up; {what['down']['messages']:.1f} messages, {what['down']['bytes']:.0f} down"
        )
    beats = rest["heartbeats"]
    print(
        f"  heartbeats: {rest['cpu_ms'] / args.rest / 10:.1f} % of a CPU, answered after p50"
        f" {beats['p50']:.2f} ms, p99 {beats['p99']:.2f} ms"
    )
    samples = result["samples"]
    more = (samples["cpu_ms"] - rest["cpu_ms"]) / args.rest / 10
    print(
        f"  samples of 8 ranks every {samples['every']:g} s: {more:.1f} % of a CPU more, heartbeats"
        f" answered after p99 {samples['heartbeats']['p99']:.2f} ms"
    )
    if nodes >= 10_000:
        verdicts.check("samples", more, 3 * args.slack, "% of a CPU")
    print(f"  coordinator's peak {result['peak_mb']:.0f} MB; stopped in {result['end_ms']:.0f} ms")
    if nodes <= 256:
        p99 = statistics.median(stop["p99"] for stop in stops)
        verdicts.check("order to stop, p99", p99, 50 * args.slack, "ms")
    if nodes >= 10_000:
        verdicts.check("round formed in", form["ms"], 5000 * args.slack, "ms")
        verdicts.row(f"{nodes:,} nodes: meet, simulated", {"muster": form["ms"] / 1000}, "s", 2)
        verdicts.row(f"{nodes:,} nodes: restart, simulated", {"muster": restart / 1000}, "s", 2)
        verdicts.row("memory of their coordinator", {"muster": result["peak_mb"]}, "MB", 0)
        verdicts.check("coordinator's peak", result["peak_mb"], 300 * args.slack, "MB")


def bytes_of(what):
    return what["up"]["bytes"] + what["down"]["bytes"]


def show_all_simulated(args, verdicts):
    results = {}
    for nodes in args.simulated:
        results[nodes] = simulate(nodes, args.fails, args.rest)
        show_simulated(nodes, results[nodes], args, verdicts)
    few, many = results[min(results)], results[max(results)]
    print(f"\na node's bytes with {max(results)} nodes / with {min(results)}")
    for name, of in (("round", lambda r: r["form"]), ("restart", lambda r: r["fails"][-1])):
        ratio = bytes_of(of(many)) / bytes_of(of(few))
        verdicts.check(f"{name}: {ratio:.2f}, at most", ratio, 1.25, "times")


FULL = {
    "rounds": 3,
    "sizes": [2, 8, 32, 256, 1000],
    "deaths": 100,
    "death_nodes": 8,
    "restarts": 5,
    "restart_nodes": 64,
    "simulated": [64, 256, 1000, 10_000],
    "fails": 7,
    "rest": 5.0,
    "limit": 300.0,
    "slack": 1,
}
QUICK = {
    **FULL,
    "rounds": 1,
    "sizes": [2, 8],
    "deaths": 3,
    "death_nodes": 4,
    "restarts": 1,
    "restart_nodes": 8,
    "simulated": [16, 512],
    "fails": 2,
    "rest": 1.2,
    "limit": 60.0,
    "slack": 20,
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few nodes, wide bounds, no torchrun")
    parser.add_argument("--without", action="append", default=[], help="leave a launcher out")
    parser.add_argument("--only", choices=("starts", "deaths", "simulated"))
    parser.add_argument("--most-of-torchrun", type=int, default=32, metavar="NODES")
    for name in ("rounds", "deaths", "restarts", "fails"):
        parser.add_argument("--" + name, type=int)
    for name in ("sizes", "simulated"):
        parser.add_argument("--" + name, type=int, nargs="+", metavar="NODES")
    args = parser.parse_args()
    for name, default in (QUICK if args.quick else FULL).items():
        if getattr(args, name, None) is None:
            setattr(args, name, default)
    args.launchers = {
        name: command
        for name, command in peers.launchers().items()
        if name == "muster" or not (args.quick or name in args.without)
    }
    return args


def main():
    args = arguments()
    print(peers.machine())
    verdicts = Verdicts()
    if args.only in (None, "starts"):
        show_starts(args, verdicts)
    if args.only in (None, "deaths"):
        show_deaths(args, verdicts)
    if args.only in (None, "simulated"):
        show_all_simulated(args, verdicts)
    print("\n" + "\n".join(verdicts.rows))
    return 1 if args.quick and verdicts.missed else 0


sys.exit(main())
