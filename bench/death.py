# SPDX-License-Identifier: Apache-2.0
"""From the death of one of 8 workers to SIGTERM at the last of its peers, and to all 8 running again.

One run of a launcher gives as many samples as it has restarts. The workers note the times
themselves; see bench_worker.cc.
"""

import contextlib

import peers

RANKS = 8


def samples(command, restarts):
    with contextlib.closing(peers.Stamps(RANKS, restarts + 1)) as stamps:
        words = ["--nproc_per_node", RANKS, "--max_restarts", restarts, "--monitor_interval", "0.1"]
        process = peers.start(command, [*words, "--no_python", peers.WORKER, stamps.name])
        if process.wait() != 0:
            raise SystemExit(f"{command[0]} failed")
        return stamps.after_deaths()


def main():
    args = peers.arguments(__doc__.splitlines()[0], rounds=3, restarts=40)
    print(peers.machine())
    told = {name: [] for name in args.launchers}
    again = {name: [] for name in args.launchers}
    for _ in range(args.rounds):
        for name, command in args.launchers.items():
            restarts = args.restarts if name == "muster" else max(2, args.restarts // 4)
            for into, values in zip((told, again), samples(command, restarts)):
                into[name] += values
    peers.show("a worker's death -> SIGTERM at its last peer", "ms", told, (5, "p99"))
    peers.show("a worker's death -> all 8 run again", "ms", again, (50, "p99"))


main()
