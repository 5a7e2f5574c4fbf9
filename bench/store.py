# SPDX-License-Identifier: Apache-2.0
"""What one GET and one ADD cost the store's server, and how fast it greets a large job.

CPU time of the server's threads, as the scheduler counts it, divided by the requests of 64 closed-
loop clients. The servers take turns, each against a load process of its own: muster's, muster's
with 8,000 idle connections, a bare epoll loop that answers the same bytes and does nothing else,
and PyTorch's own. Greeting: from the first connect() of 4,096 clients to the last PING's echo.
"""

import argparse
import glob
import os
import statistics
import subprocess
import sys

import peers

BUILD = os.path.join(peers.TOP, "build", "release")
MUSTER = [os.path.join(BUILD, "tests", "helpers", "muster_store_server")]
BARE = [os.path.join(BUILD, "bench", "store", "bare_epoll")]
LOAD = os.path.join(BUILD, "bench", "store", "load")
TORCH = """
import sys
import torch.distributed as dist
options = {} if len(sys.argv) == 1 else {"use_libuv": False}
store = dist.TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False, **options)
print(store.port, flush=True)
sys.stdin.read()
"""


class Server:
    """A server process and the load process that talks to it."""

    def __init__(self, command, *load_options, load=True):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        line = self.process.stdout.readline()
        if not line:
            raise OSError(f"{command[0]} did not start")
        self.port = int(line)
        self.load = None
        if not load:
            return
        self.load = subprocess.Popen(
            [LOAD, str(self.port), "run", *load_options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        if self.load.stdout.readline() != "ready\n":
            raise OSError("the load did not get ready")

    def cpu(self):
        total = 0
        for path in glob.glob(f"/proc/{self.pid()}/task/*/schedstat"):
            with open(path) as file:
                total += int(file.read().split()[0])
        return total

    def pid(self):
        """Of the process that holds the listening socket: a chroot's wrapper has children."""
        pid = self.process.pid
        while True:
            with open(f"/proc/{pid}/task/{pid}/children") as file:
                children = file.read().split()
            if len(children) != 1:
                return pid
            pid = int(children[0])

    def nanoseconds_per(self, operation, requests):
        before = self.cpu()
        print(operation, requests, file=self.load.stdin, flush=True)
        self.load.stdout.readline()
        return (self.cpu() - before) / requests

    def close(self):
        for process in filter(None, (self.load, self.process)):
            process.stdin.close()
            process.wait()


def start_servers(args):
    servers = {
        "muster": Server(MUSTER),
        f"muster, {args.idle} idle": Server(MUSTER, "--idle", str(args.idle)),
        "bare epoll": Server(BARE),
    }
    for name, command, options in (
        ("torch 1.13", [peers.SYSTEM_PYTHON, "-c", TORCH], ["--legacy"]),
        (
            "torch 2.14",
            [os.path.join(peers.TOP, "scripts", "in-chroot"), "python3", "-c", TORCH, "-"],
            [],
        ),
    ):
        try:
            servers[name] = Server(command, *options)
        except (OSError, ValueError):
            print(f"{name}: not on this machine, left out", file=sys.stderr)
    return servers


def measure(servers, args):
    results = {operation: {name: [] for name in servers} for operation in ("get", "add")}
    for number in range(args.rounds + 1):
        for operation, table in results.items():
            for name, server in servers.items():
                cost = server.nanoseconds_per(operation, args.requests)
                if number > 0:  # the first round warms up
                    table[name].append(cost)
    return results


def greet(args):
    times = {"muster": [], "bare epoll": []}
    for _ in range(args.rounds):
        for name, command in (("muster", MUSTER), ("bare epoll", BARE)):
            server = Server(command, load=False)
            load = subprocess.run(
                [LOAD, str(server.port), "greet", str(args.greet)],
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            times[name].append(int(load.stdout) / 1000)
            server.close()
    return times


def verdict(what, value, limit):
    print(f"  {what}: {value:.3f}, target {limit}: {'met' if value <= limit else 'MISSED'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--idle", type=int, default=8000)
    parser.add_argument("--greet", type=int, default=4096)
    args = parser.parse_args()
    print(peers.machine())
    servers = start_servers(args)
    results = measure(servers, args)
    for server in servers.values():
        server.close()
    for operation, table in results.items():
        peers.show(f"server CPU for each {operation.upper()}, 64 clients", "ns", table)
        # Round by round, so that what slows the machine down slows both.
        for what, over, under, limit in (
            ("muster / bare epoll", "muster", "bare epoll", 1.15),
            ("with / without idle connections", f"muster, {args.idle} idle", "muster", 1.10),
        ):
            ratios = [a / b for a, b in zip(table[over], table[under])]
            verdict(what, statistics.median(ratios), limit)
    times = greet(args)
    peers.show(f"{args.greet} clients connected and greeted", "ms", times)
    verdict("seconds", statistics.median(times["muster"]) / 1000, 0.5)


main()
