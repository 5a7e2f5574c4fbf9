# SPDX-License-Identifier: Apache-2.0
"""Rows 49 to 57: signals, stopping and restarts."""

import json
import os
import signal
import time

import harness
from conformance import ConformanceTest, row

# Waits for its end; notes every signal in signals.<rank>, ends at the first unless it is $KEEP.
NOTE_SIGNALS = """
import os, signal, sys
name = os.environ["T"] + "/signals." + os.environ["RANK"]
def note(number, frame):
    with open(name, "a") as file:
        file.write(signal.Signals(number).name + "\\n")
    if os.environ.get("KEEP") != "1":
        sys.exit(0)
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1):
    signal.signal(number, note)
open(os.environ["T"] + "/ready." + os.environ["RANK"], "w").close()
while True:
    signal.pause()
"""

IGNORES_TERM = """
trap '' TERM
: >$T/ready.$RANK
while :; do sleep 0.05; done
"""


class Control(ConformanceTest):
    def start_and_wait(self, *arguments, workers=2, **options):
        run = self.start("--nproc-per-node", workers, *arguments, **options)
        for rank in range(workers):
            harness.wait_until(
                lambda: os.path.exists(self.path(f"ready.{rank}")), f"rank {rank} runs"
            )
        return run

    def seconds_to_end(self, run):
        began = time.monotonic()
        run.wait()
        return time.monotonic() - began

    @row(
        49,
        "SIGTERM / INT / HUP / QUIT to tr -> both workers get the same once, exit 1, 'Process P "
        "got signal: N'; F holds the SignalException",
        "different: exit 128+n, and the report names the sender",
    )
    def test_handled_signals(self):
        worker = self.script(NOTE_SIGNALS, "note.py")
        for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"):
            with self.subTest(signal=name):
                own = self.path("F." + name)
                run = self.start_and_wait(worker, env={"TORCHELASTIC_ERROR_FILE": own})
                number = getattr(signal, name)
                run.signal(number)
                run.wait()
                self.assert_code(run, 128 + number)
                self.assertIn(name, run.err)
                self.assertIn(str(os.getpid()), run.err)  # the sender
                self.assertIn(name, json.loads(harness.read(own))["message"]["message"])
                for rank in (0, 1):
                    self.assertEqual(self.file(f"signals.{rank}"), name + "\n")
                    os.remove(self.path(f"signals.{rank}"))
                    os.remove(self.path(f"ready.{rank}"))

    @row(
        50,
        "SIGUSR1 -> tr dies by it, workers live; with --signals-to-handle SIGUSR1 -> forwarded, "
        "exit 1; SIGKILL in the list -> exit 1 at start; unknown name -> warning only",
        "different: SIGUSR1 is passed on and changes nothing else; exit 128+n; exit 2",
    )
    def test_other_signals(self):
        worker = self.script(NOTE_SIGNALS, "note.py")
        run = self.start_and_wait(worker, env={"KEEP": "1"})
        run.signal(signal.SIGUSR1)
        for rank in (0, 1):
            self.assertEqual(self.wait_for_file(f"signals.{rank}"), "SIGUSR1\n")
            os.remove(self.path(f"ready.{rank}"))
        self.assertIsNone(run.process.poll())
        run.signal(signal.SIGINT)
        harness.wait_until(lambda: "SIGINT" in self.file("signals.1"), "the workers are told")
        run.signal(signal.SIGINT)  # they stay; this ends them
        self.assert_code(run.wait(), 130)

        run = self.start_and_wait("--signals-to-handle", "SIGUSR1", worker)
        run.signal(signal.SIGUSR1)
        self.assert_code(run.wait(), 128 + signal.SIGUSR1)
        self.refused("--signals-to-handle", "SIGKILL", "--no-python", self.words(), says="SIGKILL")
        run = self.muster("--signals-to-handle", "SIGTERM,NOSUCH", "--no-python", self.words())
        self.assert_code(run, 0)
        self.assertIn("NOSUCH", run.err)

    @row(
        51,
        "SIGTERM with a worker that ignores it: --shutdown-timeout 2 -> SIGKILL after 2 s; "
        "TORCH_ELASTIC_SHUTDOWN_TIMEOUT=1 -> 1 s; 0 -> at once; a second SIGTERM -> fresh wait",
        "different: a second signal does not begin the wait anew; a second Ctrl-C kills at once",
    )
    def test_shutdown_timeout(self):
        worker = ("--no-python", self.script(IGNORES_TERM))
        for words, changes, low, high in (
            (("--shutdown-timeout", "2"), {}, 1.9, 8),
            ((), {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "1"}, 0.9, 7),
            (("--shutdown-timeout", "0"), {}, 0, 6),
        ):
            with self.subTest(words=words, changes=changes):
                run = self.start_and_wait(*words, *worker, env=changes)
                run.signal(signal.SIGTERM)
                took = self.seconds_to_end(run)
                self.assert_code(run, 143)
                self.assertTrue(low <= took <= high, took)
                for rank in (0, 1):
                    os.remove(self.path(f"ready.{rank}"))
        run = self.start_and_wait(
            "--shutdown-timeout", "600", self.script(NOTE_SIGNALS, "note.py"), env={"KEEP": "1"}
        )
        run.signal(signal.SIGINT)
        self.wait_for_file("signals.1")
        run.signal(signal.SIGINT)
        self.assert_code(run.wait(), 130)

    @row(
        52,
        "sibling failure with a worker that ignores SIGTERM and --shutdown-timeout 2 -> 30 s",
        "different: 2 s, on every path",
    )
    def test_shutdown_timeout_after_a_failure(self):
        worker = self.script(
            "if [ $RANK = 1 ]; then while [ ! -e $T/ready.0 ]; do sleep 0.01; done; exit 3; fi"
            + IGNORES_TERM
        )
        run = self.start("--nproc-per-node", "2", "--shutdown-timeout", "2", "--no-python", worker)
        took = self.seconds_to_end(run)
        self.assert_code(run, 3)
        self.assertTrue(1.9 <= took <= 10, took)

    @row(
        53,
        "SIGKILL to tr -> workers live; SIGTERM while 60 workers start -> some survive; a "
        "background child of a worker that exited 0 survives a later failure",
        "different: nothing survives",
    )
    def test_nothing_survives(self):
        sleeper = self.script(": >$T/ready.$RANK; exec sleep 600")
        run = self.start_and_wait("--no-python", sleeper)
        run.signal(signal.SIGKILL)
        self.muster_was_killed = True
        self.assert_code(run.wait(), 137)
        harness.wait_until(lambda: not harness.marked_processes(self.mark), "all are gone")

        os.remove(self.path("ready.0"))
        run = self.start("--nproc-per-node", "60", "--no-python", sleeper)
        harness.wait_until(lambda: os.path.exists(self.path("ready.0")), "the first worker runs")
        run.signal(signal.SIGTERM)
        self.assert_code(run.wait(), 143)
        self.assertEqual(harness.marked_processes(self.mark), [])

        worker = self.script(
            """
            if [ $RANK = 0 ]; then sleep 600 >/dev/null 2>&1 & echo $! >$T/child; exit 0; fi
            while [ ! -s $T/child ]; do sleep 0.01; done
            exit 3
            """
        )
        run = self.muster("--nproc-per-node", "2", "--no-python", worker)
        self.assert_code(run, 3)
        self.assertFalse(harness.alive(int(self.file("child"))))

    @row(
        55,
        "an expired request with signal 9 in the watchdog's pipe -> tr dies by it; 15 -> exit 1",
        "different: the worker is ended, muster reports it and stays",
    )
    def test_watchdog(self):
        worker = self.script(
            """
            import json, os, time
            pipe = os.open(os.environ["TORCHELASTIC_TIMER_FILE"], os.O_WRONLY)
            request = {"version": 1, "pid": os.getpid(), "scope_id": "step",
                       "expiration_time": 1.0, "signal": 9}
            os.write(pipe, json.dumps(request).encode() + b"\\n")
            time.sleep(600)
            """.replace(
                "\n            ", "\n"
            ),
            "expired.py",
        )
        run = self.muster(worker, env={"TORCHELASTIC_ENABLE_FILE_TIMER": "1"})
        self.assert_code(run, 137)
        self.assertIn("timer", run.err)

    @row(
        56,
        "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT=1, worker in state D -> error log, no restart, "
        "exit 0",
        "different: exit not 0, and the report names the stuck worker",
    )
    def test_stuck_in_the_kernel(self):
        # The parent of a vfork child waits uninterruptibly until that child is gone.
        worker = self.script(
            """
            import ctypes, time
            libc = ctypes.CDLL(None)
            if libc.vfork() == 0:
                time.sleep(8)
                libc._exit(0)
            """.replace(
                "\n            ", "\n"
            ),
            "stuck.py",
        )
        run = self.muster(worker, env={"TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT": "1"})
        self.assertNotEqual(run.code, 0)
        self.assertIn("rank 0", run.err)

    @row(
        57,
        "--max-restarts 2, fails twice then succeeds -> exit 0; RESTART_COUNT 0,1,2 in attempt_0..2"
        "; the same MASTER_PORT; with budget 1 -> exit 1",
        "different: every attempt begins with an empty store on that port; the worker's exit code",
    )
    def test_restarts(self):
        worker = self.script(
            """
            echo "$TORCHELASTIC_RESTART_COUNT $MASTER_PORT $TORCHELASTIC_MAX_RESTARTS"
            [ $TORCHELASTIC_RESTART_COUNT = 2 ] || exit 4
            """
        )
        logs = self.path("L")
        words = ("-t", "1", "--log-dir", logs, "--no-python", worker)
        self.assert_code(self.muster("--max-restarts", "2", *words), 0)
        folder = self.run_folder(logs)
        lines = [self.file(folder, f"attempt_{n}", "0", "stdout.log").split() for n in range(3)]
        self.assertEqual([line[0] for line in lines], ["0", "1", "2"])
        self.assertEqual({line[1] for line in lines}, {lines[0][1]})
        self.assertEqual({line[2] for line in lines}, {"2"})
        self.assertEqual(self.summary(folder)["restarts"], {"used": 2, "max": 2})
        run = self.muster("--max-restarts", "1", "--no-python", worker)
        self.assert_code(run, 4)


if __name__ == "__main__":
    harness.main()
