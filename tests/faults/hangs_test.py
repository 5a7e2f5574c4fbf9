# SPDX-License-Identifier: Apache-2.0
"""Hangs are named, with the rank that differs, and healthy jobs are left alone (hang_faults.py):
hangs_test.py hangs|soak [NAME...]. The threshold is some seconds here, minutes in real life."""

import contextlib
import glob
import json
import os
import signal
import sys

import corpus
import hang_faults
import harness
import verdicts
from harness import wait_until
from scene import Scene, SceneTest, lacking

THRESHOLD = 2  # seconds
SOON = 10  # after the threshold it is named
ROWS = os.environ.get("MUSTER_FAULT_ROWS")
HOUR = 12 * THRESHOLD  # as an hour is to the default threshold


class Hangs(SceneTest):
    def start_watched(self, hang):
        action = "dump" if hang.by_stacks else "warn"
        words = ("--hang-timeout", f"{THRESHOLD}:{action}", "--shutdown-timeout", 1)
        hang.options = (*hang.options, *words)
        hang.env = {"T0": str(THRESHOLD), "LONG": str(HOUR), **hang.env}
        return self.start_job(hang)

    def stalls(self):
        with contextlib.suppress(OSError, AssertionError):
            return [one for one in self.record("a") if one["event"] == "stall_found"]

    def stall(self, hang):
        """The first that is told; of a hang that needs the stacks the first that they tell."""
        for one in self.stalls() or []:
            if one["suspects"] or not hang.by_stacks:
                return one
        return None

    def end(self, runs):
        if runs[0].process.poll() is None:
            runs[0].signal(signal.SIGTERM)
        for run in runs:
            run.wait()

    def run_hang(self, hang):
        if lack := lacking(hang.needs):
            self.skipTest(f"{hang.name}: {lack}")
        with contextlib.ExitStack() as stack:
            self.prepare(hang, stack)
            runs = self.start_watched(hang)
            if hang.act:
                hang.act(Scene(self, hang))
            try:
                # PyTorch's ranks need their time to begin.
                found = wait_until(
                    lambda: self.stall(hang), "a stall is found", THRESHOLD + SOON + 20
                )
            except AssertionError as error:
                raise AssertionError(f"{error}\n{runs[0].err}") from None
            finally:
                self.end(runs)
        late = verdicts.unix_time(found["time"]) - self.begun(found) - THRESHOLD
        wrong = self.differences(hang, found, late)
        said = f"{found['kind']}, suspects {found['suspects'] or 'none'}: {found['text']}"
        print(f"{hang.name}: {said}, {late:.1f} s after the threshold")
        self.put_down(hang, said, wrong, late)
        if hang.id not in corpus.not_right():
            self.assertEqual(wrong, [], found["text"])

    def begun(self, found):
        """When the last rank came to its hang by its own word, else as muster has it."""
        words = [os.path.getmtime(path) for path in glob.glob(self.path("pid.*"))]
        return max(words, default=found["since_us"] / 1e6)

    def differences(self, hang, found, late):
        wrong = []
        if found["kind"] not in hang.kinds:
            wrong.append(f"kind is {found['kind']}")
        if found["suspects"] != hang.suspects:
            wrong.append(f"suspects are {found['suspects']!r}, not {hang.suspects!r}")
        if late > SOON:
            wrong.append(f"named {late:.1f} s after the threshold")
        return wrong

    def put_down(self, hang, said, wrong, late):
        if not ROWS:
            return
        kinds = " or ".join(hang.kinds)
        row = {"group": "hangs" if hang.kinds else "soak", "name": hang.name, "found": said}
        row["expected"] = f"{kinds}, suspects {hang.suspects or 'none'}" if kinds else "no alarm"
        with open(ROWS, "a") as file:
            file.write(json.dumps({**row, "differences": wrong, "late": late}) + "\n")


class Soak(Hangs):
    def start_soak(self, job, folder):
        os.mkdir(self.path(folder))
        worker = self.script(job.program, os.path.join(folder, "train.py"))
        words = ["--hang-timeout", f"{THRESHOLD}:warn", "--nproc-per-node", job.ranks]
        words += ["--log-dir", self.path(folder, "logs"), "--no-python", sys.executable, worker]
        env = {"T": self.path(folder), "T0": str(THRESHOLD), "LONG": str(HOUR), **job.env}
        return self.start(*words, env=env)

    def stalls_of(self, folder):
        run_folder = self.run_folder(self.path(folder, "logs"))
        lines = self.file(run_folder, "events.jsonl").splitlines()
        events = [json.loads(line) for line in lines]
        return [one for one in events if one["event"] == "stall_found"]

    def test_an_hour_of_healthy_work(self):
        """All jobs at once: they share the processors, as busy nodes do."""
        folders = {job.name: f"soak{n}" for n, job in enumerate(hang_faults.healthy)}
        jobs = [(job, self.start_soak(job, folders[job.name])) for job in hang_faults.healthy]
        alarms = {}
        for job, run in jobs:
            run.wait(HOUR + harness.PATIENCE)
            self.assert_code(run, 0)
            found = self.stalls_of(folders[job.name])
            alarms[job.name] = found[0]["text"] if found else "no alarm"
            wrong = ["a false alarm"] if found else []
            self.put_down(job, alarms[job.name], wrong, None)
        self.assertEqual(set(alarms.values()), {"no alarm"}, alarms)


def add_tests(hangs):
    for number, hang in enumerate(hangs):
        words = "".join(c if c.isalnum() else "_" for c in hang.name)

        def test(self, hang=hang):
            self.run_hang(hang)

        setattr(Hangs, f"test_{number:02}_{words}", test)


def main():
    what, *wanted = sys.argv[1:]
    if what == "hangs":
        found = hang_faults.hangs
        add_tests([one for one in found if not wanted or any(word in one.name for word in wanted)])
    sys.argv[1:] = [{"hangs": "Hangs", "soak": "Soak"}[what]]
    harness.main(may_skip=True)


if __name__ == "__main__":
    main()
