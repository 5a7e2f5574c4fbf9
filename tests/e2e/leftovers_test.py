# SPDX-License-Identifier: Apache-2.0
"""Nothing survives, whatever is killed at whatever moment of a job's life."""

import contextlib
import json
import os
import random
import signal
import subprocess
import time

import harness
from harness import MusterTest

HELPERS = os.path.join(os.environ.get("MUSTER_BUILD", ""), "tests", "helpers")
ROUNDS = int(os.environ.get("MUSTER_LEFTOVER_ROUNDS", "50"))
CGROUPS = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")


def helper(name):
    return os.path.join(HELPERS, name)


def own_cgroup():
    """The folder of this process's cgroup v2, or None."""
    for line in harness.read("/proc/self/cgroup").decode().splitlines():
        if line.startswith("0::/"):
            for root in CGROUPS:
                path = os.path.join(root, line[4:])
                if os.path.exists(os.path.join(path, "cgroup.kill" if line[4:] else "cgroup.procs")):
                    return path
    return None


class Leftovers(MusterTest):
    def setUp(self):
        super().setUp()
        self.seed = int(os.environ.get("MUSTER_SEED", random.randrange(1 << 32)))
        self.random = random.Random(self.seed)
        self.muster_was_killed = True
        self.supervisors = set()  # those that were seen; other jobs may run on this machine

    def nap(self, most):
        time.sleep(self.random.uniform(0, most))

    def supervisor(self, run):
        """The pid of the other half, once there is one; None when the front has ended."""
        harness.wait_until(
            lambda: harness.children(run.pid) or run.process.poll() is not None, "it has forked"
        )
        found = harness.children(run.pid)
        self.supervisors.update(found)
        return found[0] if found else None

    def kill(self, run, target):
        self.supervisors.update(harness.children(run.pid))
        if target == "front":
            run.signal(signal.SIGKILL)
        elif target == "group":
            os.killpg(run.pid, signal.SIGKILL)
        elif (pid := self.supervisor(run)) is not None:
            with contextlib.suppress(ProcessLookupError):  # the job had just ended
                os.kill(pid, signal.SIGKILL)
        run.wait()

    def all_gone(self, what):
        try:
            harness.wait_until(lambda: not harness.marked_processes(self.mark), what, 15)
        except AssertionError:
            self.fail(f"{what}, seed {self.seed}: left {harness.marked_processes(self.mark)}")
        for pid in harness.children(os.getpid()):
            os.waitpid(pid, 0)
        if (folder := own_cgroup()) is not None:
            ours = {f"muster.{pid}" for pid in self.supervisors}
            harness.wait_until(lambda: not ours & set(os.listdir(folder)), f"{what}: no cgroup")

    def start_job(self, phase):
        options = ["--nproc-per-node", 6, "--shutdown-timeout", "1", "--no-python"]
        worker = [helper("leave_behind"), self.random.choice(["-", "i", "d", "di"]), "stay"]
        if phase == "restart":
            options = [*harness.RESTART_FREELY, "--max-restarts", 1000] + options
            worker[-1] = "3"
        elif phase == "end":
            worker[-1] = "0"
        run = self.start(*options, *worker, start_new_session=True)
        if phase == "stop":
            harness.wait_until(lambda: run.out.count("ready") == 6, "all six run")
            run.signal(signal.SIGTERM)
        elif phase != "start":
            harness.wait_until(lambda: run.out.count("ready") >= 6, "all six run")
        return run

    def test_kill_9_at_any_moment(self):
        for number in range(ROUNDS):
            phase = self.random.choice(["start", "start", "run", "stop", "restart", "end"])
            target = self.random.choice(["front", "group", "supervisor"])
            run = self.start_job(phase)
            self.nap(0.25 if phase == "start" else 0.05)
            self.kill(run, target)
            self.all_gone(f"round {number}: {target} killed in {phase}")

    def test_sigterm_at_any_moment(self):
        for number in range(ROUNDS // 2):
            phase = self.random.choice(["start", "run", "restart", "restart", "end"])
            run = self.start_job(phase)
            self.nap(0.25 if phase == "start" else 0.05)
            self.supervisors.update(harness.children(run.pid))
            run.signal(signal.SIGTERM)
            run.wait()
            what = f"round {number}: SIGTERM in {phase}, seed {self.seed}"
            # A job whose last worker had ended by then succeeded.
            self.assertIn(run.code, (0, 143) if phase == "end" else (143,), what + "\n" + run.err)
            self.assertEqual(harness.marked_processes(self.mark), [], what)
            self.all_gone(what)

    def test_sigterm_while_sixty_workers_start(self):
        for number in range(ROUNDS // 5):
            run = self.start(
                "--nproc-per-node", 60, "--no-python", helper("leave_behind"), "d", "stay"
            )
            self.nap(0.4)
            self.supervisors.update(harness.children(run.pid))
            run.signal(signal.SIGTERM)
            run.wait()
            self.assertEqual(run.code, 143, f"round {number}, seed {self.seed}\n{run.err}")
            self.assertEqual(harness.marked_processes(self.mark), [], f"round {number}")
            self.all_gone(f"round {number}: SIGTERM in the start")

    def test_pkill_9_by_the_name_of_the_script(self):
        # The daemon's command line does not name it: only the supervisor can find that one.
        worker = self.script(
            "setsid sh -c 'echo $$; exec sleep 600' </dev/null >$T/daemon 2>&1 &\n"
            "while [ ! -s $T/daemon ]; do sleep 0.01; done; echo ready; sleep 600"
        )
        run = self.start("--no-python", worker)
        harness.wait_until(lambda: "ready" in run.out, "it runs")
        self.supervisor(run)
        subprocess.run(["pkill", "-9", "-f", worker], check=True)
        run.wait()
        self.assertEqual(run.code, 137)
        self.all_gone("pkill -9 -f")

    def test_a_muster_inside_a_muster(self):
        inner = [harness.MUSTER, "--nproc-per-node", 2, "--shutdown-timeout", "1", "--no-python"]
        for target in ("front", "group", "supervisor", None):
            run = self.start(
                *("--nproc-per-node", 2, "--no-python"),
                *inner,
                *(helper("leave_behind"), "di", "stay"),
                start_new_session=True,
            )
            harness.wait_until(lambda: run.out.count("ready") == 4, f"all four run\n{run.err}")
            if target is None:
                run.signal(signal.SIGTERM)
                self.supervisors.update(harness.children(run.pid))
                run.wait()
                self.assertEqual(run.code, 143, run.err)
                self.assertEqual(harness.marked_processes(self.mark), [])
            else:
                self.kill(run, target)
            self.all_gone(f"muster in muster, {target}")

    def test_a_worker_stuck_in_the_kernel(self):
        # A frozen process is as deaf to SIGKILL as one that waits for a dead disk.
        freezer = f"/sys/fs/cgroup/freezer/muster-test.{os.getpid()}"
        try:
            os.mkdir(freezer)
        except OSError as error:
            self.skipTest(f"no writable freezer cgroup (v1): {error}")

        def write(name, text):
            with open(os.path.join(freezer, name), "w") as file:
                file.write(text)

        self.addCleanup(os.rmdir, freezer)
        self.addCleanup(self.all_gone, "thawed")
        self.addCleanup(self.muster, "--no-python", "/bin/true")  # removes the old cgroup
        self.addCleanup(write, "freezer.state", "THAWED")
        summary = self.path("summary.json")
        run = self.start(
            *("--nproc-per-node", 2, "--shutdown-timeout", "1", "--summary", summary),
            *("--no-python", helper("ignore_term")),
        )
        harness.wait_until(lambda: run.out.count("ready") == 2, "both run")
        stuck = harness.children(self.supervisor(run))[0]
        write("cgroup.procs", str(stuck))
        write("freezer.state", "FROZEN")
        harness.wait_until(lambda: harness.process_state(stuck) == "D", "it is stuck")
        run.signal(signal.SIGTERM)
        run.wait()
        self.assertEqual(run.code, 143, run.err)
        self.assertIn(f"pid {stuck} ignore_term in state D", run.err)
        self.assertNotIn("nothing left running", run.err)
        with open(summary) as file:
            (leftover,) = [one for one in json.load(file)["leftovers"] if one["pid"] == stuck]
        self.assertEqual(leftover["state"], "D")
        self.assertNotEqual(leftover["wait_channel"], "")

    def test_as_the_first_process_of_a_container(self):
        container = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
        if subprocess.run(container + ["true"], stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("no right to make a pid namespace")
        for number in (signal.SIGTERM, signal.SIGKILL):
            run = self.start(
                *("--nproc-per-node", 2, "--shutdown-timeout", "1", "--no-python"),
                *(helper("leave_behind"), "di", "stay"),
                command=container + [harness.MUSTER],
            )
            harness.wait_until(lambda: run.out.count("ready") == 2, "both run")
            (front,) = harness.children(run.pid)
            (supervisor,) = harness.children(front)
            os.kill(front if number == signal.SIGTERM else supervisor, number)
            run.wait()
            self.assertEqual(run.code, 128 + number, run.err)
            if number == signal.SIGTERM:
                self.assertIn("got SIGTERM from outside the container", run.err)
            self.assertEqual(harness.marked_processes(self.mark), [])

    def test_two_interrupts_at_any_moment(self):
        for number in range(ROUNDS // 5):
            run = self.start(
                "--nproc-per-node", 8, "--no-python", helper("leave_behind"), "di", "stay"
            )
            harness.wait_until(lambda: run.out.count("ready") >= 1, "one runs")
            self.nap(0.05)
            run.signal(signal.SIGINT)
            self.nap(0.05)
            run.signal(signal.SIGINT)
            began = time.monotonic()
            run.wait()
            self.assertEqual(run.code, 130, f"round {number}, seed {self.seed}\n{run.err}")
            self.assertLess(time.monotonic() - began, 10)
            self.assertEqual(harness.marked_processes(self.mark), [], f"round {number}")


if __name__ == "__main__":
    harness.main()
