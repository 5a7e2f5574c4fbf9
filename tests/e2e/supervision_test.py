# SPDX-License-Identifier: Apache-2.0
"""Workers and their end: nothing survives, whoever dies, and jobs do not meet each other."""

import os
import signal
import subprocess
import time

import harness
from harness import MusterTest

SLEEPER = ": >$T/ready.$RANK; exec sleep 600"

# A grandchild in a session of its own, whose parents are gone: as a daemon makes itself.
DAEMON = """
(setsid sh -c 'echo $$ >$T/daemon.new; mv $T/daemon.new $T/daemon; exec sleep 600' \
  </dev/null >/dev/null 2>&1 &)
while [ ! -e $T/daemon ]; do sleep 0.01; done
"""


class Supervision(MusterTest):
    def start_workers(self, text, *options, workers=2, **more):
        run = self.start(
            "--nproc-per-node", workers, *options, "--no-python", self.script(text), **more
        )
        for rank in range(workers):
            ready = self.path(f"ready.{rank}")
            harness.wait_until(lambda: os.path.exists(ready), f"rank {rank} runs\n{run.err}")
        return run

    def supervisor(self, run):
        (pid,) = harness.children(run.pid)
        return pid

    def all_gone(self):
        harness.wait_until(lambda: not harness.marked_processes(self.mark), "all are gone", 10)

    def test_kill_9_of_what_the_user_started(self):
        run = self.start_workers(DAEMON + SLEEPER)
        self.muster_was_killed = True
        run.signal(signal.SIGKILL)
        self.all_gone()

    def test_kill_9_of_its_whole_group(self):
        run = self.start_workers(DAEMON + SLEEPER, start_new_session=True)
        self.muster_was_killed = True
        os.killpg(run.pid, signal.SIGKILL)
        self.all_gone()

    def test_kill_9_of_its_other_half(self):
        run = self.start_workers(DAEMON + SLEEPER)
        self.muster_was_killed = True
        os.kill(self.supervisor(run), signal.SIGKILL)
        run.wait()
        self.assertNotEqual(run.code, 0)
        self.all_gone()

    def test_a_daemon_of_a_worker_that_failed(self):
        run = self.muster("--no-python", self.script(DAEMON + "exit 3"))
        self.assert_code(run, 3)
        self.assertFalse(harness.alive(int(self.file("daemon"))))

    def test_a_daemon_of_a_worker_that_succeeded(self):
        run = self.muster("--no-python", self.script(DAEMON + "exit 0"))
        self.assert_code(run, 0)
        self.assertFalse(harness.alive(int(self.file("daemon"))))

    def test_a_daemon_does_not_reach_the_next_attempt(self):
        worker = self.script(
            "if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then" + DAEMON + "exit 3; fi\n"
            "if kill -0 $(cat $T/daemon) 2>/dev/null; then exit 9; fi"
        )
        self.assert_code(self.muster("--max-restarts", "1", "--no-python", worker), 0)

    def test_a_wrapper_with_a_background_child(self):
        run = self.start_workers("sleep 600 & : >$T/ready.$RANK; wait")
        run.signal(signal.SIGTERM)
        self.assert_code(run.wait(), 143)

    def test_a_stop_is_as_quick_as_the_slowest_worker(self):
        run = self.start_workers(SLEEPER, workers=8)
        began = time.monotonic()
        run.signal(signal.SIGTERM)
        self.assert_code(run.wait(), 143)
        self.assertLess(time.monotonic() - began, 5)
        self.assertIn("nothing left running", run.err)

    def test_only_descendants_are_touched(self):
        bystander = subprocess.Popen(["sleep", "600"], start_new_session=True)
        try:
            self.muster("--nproc-per-node", "2", "--no-python", self.script("exit $RANK"))
            self.assertTrue(harness.alive(bystander.pid))
        finally:
            bystander.kill()
            bystander.wait()

    def test_nohup_stays_in_force(self):
        run = self.start_workers(
            SLEEPER, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
        )
        run.signal(signal.SIGHUP)
        run.signal(signal.SIGUSR2)  # has no handler in a sleep: both workers die of it
        run.wait()
        self.assertIn("SIGUSR2", run.err)
        self.assertNotIn("SIGHUP", run.err)

    def test_user_signals_reach_every_worker(self):
        worker = """
            trap 'echo got >$T/usr.$RANK; exit 0' USR2
            : >$T/ready.$RANK
            while :; do sleep 0.02; done
        """
        run = self.start_workers(worker)
        run.signal(signal.SIGUSR2)
        self.assert_code(run.wait(), 0)
        for rank in (0, 1):
            self.assertEqual(self.file(f"usr.{rank}"), "got\n")

    def test_two_jobs_at_once_do_not_meet(self):
        runs = [
            self.start(
                "--nproc-per-node",
                "2",
                "--no-python",
                self.script(
                    f"sleep 0.{n}; env " "| grep MASTER_PORT >$T/port.$RANK.$PPID", f"{n}.sh"
                ),
            )
            for n in (2, 3)
        ]
        for run in runs:
            self.assert_code(run.wait(), 0)
        ports = {self.file(name) for name in os.listdir(self.dir) if name.startswith("port.")}
        self.assertEqual(len(ports), 2, ports)

    def test_everything_listens_on_loopback_only(self):
        run = self.start_workers(SLEEPER)
        own = set()
        for pid in (run.pid, self.supervisor(run)):
            for fd in os.listdir(f"/proc/{pid}/fd"):
                own.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
        listening = []
        for name in ("tcp", "tcp6"):
            for line in harness.read(f"/proc/net/{name}").decode().splitlines()[1:]:
                fields = line.split()
                if fields[3] == "0A" and f"socket:[{fields[9]}]" in own:
                    listening.append(fields[1].split(":")[0])
        self.assertEqual(listening, ["0100007F"] * 2)  # the store and the page
        run.signal(signal.SIGTERM)
        run.wait()

    def test_descriptors_do_not_grow_with_restarts(self):
        worker = self.script(
            """
            ls /proc/$PPID/fd | wc -l >>$T/open
            sleep 0.05
            exit 3
            """
        )
        words = (*harness.RESTART_FREELY, "--max-restarts", "10", "--no-python", worker)
        self.assert_code(self.muster(*words), 3)
        counts = [int(line) for line in self.file("open").splitlines()]
        self.assertEqual(len(counts), 11)
        self.assertLessEqual(min(counts[-4:]), min(counts[:4]), counts)

    def test_every_attempt_begins_with_an_empty_store(self):
        worker = self.script(
            """
            import os, socket, struct, sys
            address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
            store = socket.create_connection(address)
            key = struct.pack("<Q", 2) + b"/k"
            add = b"\\x00" + struct.pack("<I", 0x3C85F7CE) + b"\\x04" + key + struct.pack("<q", 1)
            store.sendall(add)
            (count,) = struct.unpack("<q", store.recv(8, socket.MSG_WAITALL))
            print("count", count, flush=True)
            sys.exit(3)
            """.replace(
                "\n            ", "\n"
            ),
            "store.py",
        )
        run = self.muster("--max-restarts", "2", worker)
        self.assert_code(run, 3)
        self.assertEqual(run.out.count("count 1"), 3, run.out)

    def test_what_cannot_heal_is_not_retried(self):
        broken = self.script("def (:", "syntax.py")
        missing = self.script("import no_such_module_at_all", "missing.py")
        for script in (broken, missing):
            run = self.muster("--max-restarts", "3", "--summary", self.path("s.json"), script)
            self.assert_code(run, 1)
            self.assertIn('"used": 0', self.file("s.json").replace('"used":0', '"used": 0'))
            self.assertIn("--restart-always", run.err)
        run = self.muster("--max-restarts", "2", "--restart-always", broken)
        self.assert_code(run, 1)
        self.assertEqual(run.err.count("SyntaxError") >= 1, True)


if __name__ == "__main__":
    harness.main()
