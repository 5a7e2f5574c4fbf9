# SPDX-License-Identifier: Apache-2.0
"""Runs the fault corpus (corpus.py), one group of it: faults_test.py GROUP [NAME...].

With MUSTER_FAULT_ROWS=FILE each result is a line of JSON there, for scripts/fault-table. What
not_right.txt lists is known not to be exactly right; all else must be.
"""

import contextlib
import json
import os
import socket
import sys

import corpus
import end_faults  # noqa: F401  each adds its group
import gpu_faults  # noqa: F401
import harness
import native_faults  # noqa: F401
import node_faults  # noqa: F401
import python_faults  # noqa: F401
import shell_faults  # noqa: F401
import together_faults  # noqa: F401
import torch_faults  # noqa: F401
import verdicts
from scene import Scene, SceneTest, lacking

SOON = 1.0  # seconds from the first death to the verdict
ROWS = os.environ.get("MUSTER_FAULT_ROWS")


class Faults(SceneTest):
    # -- what came of it --------------------------------------------------------------------------

    def failures(self, events):
        """Those of the last attempt, the cause first."""
        found = [event for event in events if event["event"] == "failure_found"]
        return [event for event in found if event["attempt"] == found[-1]["attempt"]]

    def summarized(self):
        """What stands of them in the summary, where the events had no room on the disk."""
        summary = json.loads(self.file("summary.json"))
        return [one for one in (summary["root_cause"], *summary["other_causes"]) if one]

    def seconds_to_verdict(self, fault, records):
        """On the coordinator's clock, corrected by what we know of the others'."""
        verdict = self.failures(records["a"])
        if not verdict:
            return None
        deaths = [
            verdicts.unix_time(event["time"]) - fault.skew.get(name, 0)
            for name, events in records.items()
            for event in events
            if event["event"] in ("worker_exited", "spawn_failed", "node_lost")
            and event.get("attempt", verdict[0]["attempt"]) == verdict[0]["attempt"]
            and event.get("wait_status", 1) != 0
        ]
        if not deaths:
            return None
        told = verdicts.unix_time(verdict[0]["time"]) - fault.skew.get("a", 0)
        return max(0.0, told - min(deaths))

    def host_of(self, fault):
        if fault.nodes == 1:
            return socket.gethostname()
        node = fault.env.get("CULPRIT") or "abc"[fault.rank // fault.ranks]
        return self.host_name(node)

    def told_otherwise(self, records):
        """Nodes that were there at the end and tell another cause than the coordinator found."""

        def cause(failure):
            return (failure["rank"], failure["host"], failure["kind"]) if failure else None

        root = next(iter(self.failures(records["a"])), None)
        return [
            f"node {name} tells of {cause(told)}"
            for name in records
            if name not in self.gone_nodes and name not in self.frozen_nodes
            for told in [self.nodes[name].summary["root_cause"]]
            if cause(told) != cause(root)
        ]

    def run_fault(self, fault):
        if lack := lacking(fault.needs):
            self.skipTest(f"{fault.name}: {lack}")
        with contextlib.ExitStack() as stack:
            self.prepare(fault, stack)
            runs = self.start_job(fault)
            if fault.act:
                fault.act(Scene(self, fault))
            self.wait_for_all(fault, runs)
            names = ["a"] if fault.nodes == 1 else list(self.nodes)
            records = {} if fault.small_disk else {name: self.record(name) for name in names}
        stories = "\n".join(run.err for run in runs)
        verdict = self.verdict(fault, records)
        if fault.nodes > 1 and not fault.ends:
            verdict.differences += self.told_otherwise(records)
        self.put_down(fault, verdict)
        self.check(fault, verdict, stories)

    def verdict(self, fault, records):
        told = records.get(fault.told_by)
        failures = self.failures(told) if told else self.summarized()
        if fault.ends:
            return verdicts.judge_end(fault, failures, told[-1].get("kind", ""))
        seconds = self.seconds_to_verdict(fault, records) if records else None
        return verdicts.judge(fault, failures, self.host_of(fault), seconds)

    def wait_for_all(self, fault, runs):
        try:
            for run in runs:
                run.wait(fault.seconds)
        except AssertionError:
            self.put_down(fault, verdicts.judge(fault, [], self.host_of(fault), None))
            raise

    def put_down(self, fault, verdict):
        if verdict.differences:
            print(f"NOT RIGHT {fault.name}: {'; '.join(verdict.differences)}", flush=True)
        elif fault.id in corpus.not_right():
            print(f"RIGHT NOW {fault.name}, although not_right.txt lists it", flush=True)
        if ROWS:
            with open(ROWS, "a") as file:
                file.write(json.dumps({"group": fault.group, **verdict.as_row()}) + "\n")

    def check(self, fault, verdict, stories):
        if fault.id in corpus.not_right():
            return
        self.assertEqual(verdict.differences, [], f"{verdict}\n{stories}")
        if verdict.seconds is not None:
            self.assertLess(verdict.seconds, 5 * SOON, stories)  # p99 is the table's


def add_tests(faults):
    for number, fault in enumerate(faults):
        words = "".join(c if c.isalnum() else "_" for c in fault.name)

        def test(self, fault=fault):
            self.run_fault(fault)

        setattr(Faults, f"test_{number:03}_{words}", test)


def main():
    name, *wanted = sys.argv[1:]
    found = corpus.in_group(name)
    assert found, f"no such group: {name}"
    chosen = [f for f in found if not wanted or any(word in f.name for word in wanted)]
    assert chosen, f"no such fault in {name}: {wanted}"
    add_tests(chosen)
    sys.argv[1:] = []
    harness.main(may_skip=True)


if __name__ == "__main__":
    main()
