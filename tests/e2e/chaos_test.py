# SPDX-License-Identifier: Apache-2.0
"""Random faults against jobs of several nodes on loopback, for MUSTER_CHAOS_SECONDS (60).

What happens to a job follows from its seed alone; when exactly it happens is up to the machine. A
failure prints the seed: MUSTER_SEED=... runs that job again, and only that. Afterwards all that
the nodes recorded must keep the promises of invariants.py, and nothing may be left running.
"""

import contextlib
import os
import random
import signal
import time

import harness
from harness import wait_until
from nodes import NodesTest

SECONDS = float(os.environ.get("MUSTER_CHAOS_SECONDS", "60"))
SEED = os.environ.get("MUSTER_SEED")
STEPS = 14
# What may happen, and how often compared with the others.
FAULTS = {
    "worker_killed": 4,
    "worker_exits": 3,
    "node_joins": 5,
    "node_killed": 2,
    "half_killed": 2,
    "node_frozen": 3,
    "node_thawed": 3,
    "node_leaves": 1,
    "host_frozen": 0.3,
    "host_killed": 0.15,
    "job_stopped": 0.15,
}


class Chaos(NodesTest):
    def test_random_faults_break_no_promise(self):
        seed = int(SEED) if SEED else random.randrange(1 << 32)
        until = time.monotonic() + SECONDS
        jobs = 0
        while jobs == 0 or (not SEED and time.monotonic() < until):
            self.fresh()
            print(f"job {jobs}: seed {seed}", flush=True)
            with self.subTest(seed=seed):
                Job(self, random.Random(seed)).run()
            seed = (seed * 6364136223846793005 + 1442695040888963407) % (1 << 32)
            jobs += 1


class Job:
    """One job and what is done to it."""

    def __init__(self, test, chance):
        self.test = test
        self.chance = chance
        self.least, self.most = chance.choice([(1, 3), (1, 4), (2, 3), (2, 2), (3, 4)])
        self.budget = chance.choice([0, 2, 100, 100, 100])
        self.story = []
        self.count = 0
        self.frozen = []
        self.over = False  # something that ends the job was done

    def say(self, what):
        self.story.append(f"{time.strftime('%H:%M:%S')} {what}")

    def run(self):
        try:
            host = self.join()
            self.test.wait_for_host(host)
            for _ in range(self.least - 1):
                self.join()
            names, weights = zip(*FAULTS.items())
            for fault in self.chance.choices(names, weights, k=STEPS):
                time.sleep(self.chance.uniform(0, 0.8))
                if all(node.run.process.poll() is not None for node in self.nodes()):
                    break
                getattr(self, fault)(self.chance.random())
            self.end()
            self.check()
        except BaseException:
            print("\n".join(self.story), flush=True)
            for node in self.nodes():
                print(node.story(), flush=True)
            raise

    # -- who is there -----------------------------------------------------------------------------

    def nodes(self):
        return list(self.test.nodes.values())

    def running(self, but_host=True):
        nodes = self.nodes()[1 if but_host else 0 :]
        return [node for node in nodes if node.run.process.poll() is None]

    def pick(self, where, among):
        """One of them, by a number from 0 to 1."""
        return among[int(where * len(among))] if among else None

    def join(self):
        name = "n" + chr(ord("a") + self.count)
        self.count += 1
        self.say(f"{name} joins")
        return self.test.agent(
            name,
            *harness.RESTART_FREELY,
            *("--max-restarts", self.budget, "--shutdown-timeout", 5),
            *(("--on-node-signal", "leave") if self.count > 1 else ()),
            nnodes=f"{self.least}:{self.most}",
            workers=1 + self.count % 2,
            conf={"join_timeout": 20, "is_host": str(self.count == 1).lower()},
        )

    # -- faults -----------------------------------------------------------------------------------

    def worker_killed(self, where):
        living = [(node, env) for node in self.running(False) for env in node.living().values()]
        if chosen := self.pick(where, living):
            node, env = chosen
            self.say(f"worker {env['RANK']} on {node.name} is killed")
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(env["PID"]), signal.SIGKILL)

    def worker_exits(self, where):
        if node := self.pick(where, self.running(False)):
            self.say(f"a worker of {node.name} exits {int(where * 50) + 1}")
            self.test.tell(node, f"exit {int(where * 50) + 1}")

    def node_joins(self, _):
        if len(self.running(False)) < self.most + 1 and self.count < 12:
            self.join()

    def node_killed(self, where):
        if node := self.pick(where, self.running()):
            self.say(f"{node.name} is killed")
            node.kill()

    def half_killed(self, where):
        if node := self.pick(where, self.running()):
            half = "front" if where < 0.5 else "supervisor"
            self.say(f"the {half} of {node.name} is killed")
            node.kill(half)

    def node_frozen(self, where, among=None):
        running = among or [node for node in self.running() if node not in self.frozen]
        if node := self.pick(where, running):
            self.say(f"{node.name} is frozen")
            self.frozen.append(node)
            node.freeze()

    def node_thawed(self, _):
        if self.frozen:
            node = self.frozen.pop(0)
            self.say(f"{node.name} goes on")
            node.thaw()

    def node_leaves(self, where):
        thawed = [node for node in self.running() if node not in self.frozen]
        if node := self.pick(where, thawed):
            self.say(f"{node.name} leaves")
            self.test.gone_nodes.add(node.name)
            node.signal(signal.SIGTERM)

    def host_frozen(self, where):
        if self.nodes()[0] in self.running(False) and self.nodes()[0] not in self.frozen:
            self.over = True
            self.node_frozen(where, self.nodes()[:1])

    def host_killed(self, _):
        self.say("the host is killed")
        self.over = True
        self.nodes()[0].kill()

    def job_stopped(self, _):
        if self.nodes()[0] not in self.frozen:
            self.say("the job is stopped")
            self.over = True
            self.nodes()[0].signal(signal.SIGTERM)

    # -- the end ----------------------------------------------------------------------------------

    def end(self):
        """Nothing more happens: the job has to find its end by itself."""
        while self.frozen:
            self.node_thawed(0)
        self.say("the workers finish")
        self.test.finish()
        wait_until(self.has_ended, "every agent has ended", 90)
        for node in self.nodes():
            node.run.wait()

    def has_ended(self):
        """Whether all agents have; while too few are left for the job, others join."""
        left = [node for node in self.running(False) if node.name not in self.test.gone_nodes]
        if not self.over and self.nodes()[0] in left and len(left) < self.least:
            self.join()
        return not self.running(False)

    def check(self):
        codes = {
            node.name: node.run.code
            for node in self.nodes()
            if node.name not in self.test.gone_nodes | self.test.frozen_nodes
        }
        host = self.nodes()[0]
        if not self.over and host.name in codes:
            # Who came when the job was already over may have found nobody.
            took_part = [node for node in self.nodes() if node.events("attempt_started")]
            shared = {codes[node.name] for node in took_part if node.name in codes}
            self.test.assertLessEqual(len(shared), 1, codes)
            if self.budget == 100:
                self.test.assertEqual(host.run.code, 0, codes)
        self.test.assertEqual(self.test.broken_promises(), [])
        self.test.assertEqual(self.test.violations(), [])


if __name__ == "__main__":
    harness.main()
