# SPDX-License-Identifier: Apache-2.0
"""How many restarted gloo groups meet again: two PyTorch ranks, one is killed after each meeting.

Each run asks for one restart; it counts if both ranks then form their group within 30 s.
"""

import os
import subprocess

import peers

WORKER = os.path.join(peers.TOP, "tests", "pytorch", "gloo_worker.py")


def meets_again(command):
    words = ["--nproc_per_node", 2, "--max_restarts", 1, WORKER, "restart"]
    env = {"GLOO_SOCKET_IFNAME": "lo", "PYTHON_EXEC": peers.SYSTEM_PYTHON}
    process = peers.start(command, words, env=env)
    try:
        return process.wait(30) == 0
    except subprocess.TimeoutExpired:
        process.terminate()
        process.wait()
        return False


def main():
    args = peers.arguments(__doc__.splitlines()[0], rounds=50)
    print(peers.machine())
    met = {name: [] for name in args.launchers}
    for number in range(args.rounds):
        for name, command in args.launchers.items():
            if name == "muster" or number < 6:  # a failure of torchrun's takes up to 30 s
                met[name].append(meets_again(command))
    for name, values in met.items():
        print(f"{name:14} {sum(values)} of {len(values)} restarted groups met")


main()
