# SPDX-License-Identifier: Apache-2.0
"""A job that makes no progress any more is said to stand still, with who differs; one that works,
however quietly, is not."""

import json
import os
import shutil
import signal
import time

import harness
from api import Api
from harness import MusterTest, read, wait_until
from nodes import NodesTest

# Seconds: the threshold, and how long after it a stall may be found.
THRESHOLD = 3
LATE = 10


class Stalls(MusterTest):
    def job(self, script, *arguments, ranks=3):
        self.run = self.start(
            *("--log-dir", self.path("logs"), "--nproc-per-node", ranks),
            *("--hang-timeout", THRESHOLD, "--console", "none", *arguments),
            self.script(script),
        )
        return self.run

    def has_begun(self):
        logs = self.path("logs")
        return os.path.isdir(logs) and os.listdir(logs)

    def events(self, kind):
        path = os.path.join(self.run_folder(self.path("logs")), "events.jsonl")
        lines = [json.loads(line) for line in read(path).split(b"\n")[:-1]]
        return [event for event in lines if event["event"] == kind]

    def stall(self, count=1):
        def found():
            if not self.has_begun():
                return None
            stalls = self.events("stall_found")
            return stalls[count - 1] if len(stalls) >= count else None

        try:
            return wait_until(found, "a stall is found")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.run.err}") from None

    def end(self, run):
        run.signal(signal.SIGTERM)
        run.wait()

    def pid_of(self, rank):
        [event] = [e for e in self.events("worker_spawned") if e["rank"] == rank]
        return event["pid"]

    def test_a_stopped_rank_is_named_and_goes_on_when_it_is_continued(self):
        run = self.job("sleep 1; echo up; exec sleep 100")
        wait_until(self.has_begun, "there are logs")
        wait_until(lambda: len(self.events("first_output")) == 3, "all are up")
        os.kill(self.pid_of(1), signal.SIGSTOP)
        stopped = time.time()
        stall = self.stall()
        self.assertLess(time.time() - stopped, THRESHOLD + LATE)
        self.assertEqual((stall["kind"], stall["suspects"]), ("stopped", "1"), stall)
        self.assertEqual(stall["waiting"], "0,2")
        run.wait_for_message("rank 1 is stopped")
        os.kill(self.pid_of(1), signal.SIGCONT)
        # It sleeps like the others again: still no progress, but nobody differs.
        self.assertEqual(self.stall(2)["kind"], "all_idle")
        self.end(run)

    def test_who_waits_elsewhere_is_the_suspect(self):
        os.mkfifo(self.path("never"))
        run = self.job('[ $RANK = 2 ] && exec cat < "$T/never"; exec sleep 100')
        stall = self.stall()
        self.assertEqual((stall["kind"], stall["suspects"]), ("rank_missing", "2"), stall)
        run.wait_for_message("rank 2 waits elsewhere than the others")
        self.end(run)

    def test_an_endless_loop_is_caught_while_the_others_wait(self):
        run = self.job("[ $RANK = 0 ] && while :; do :; done; exec sleep 100")
        stall = self.stall()
        self.assertEqual((stall["kind"], stall["suspects"]), ("spinning", "0"), stall)
        self.end(run)

    def test_a_traceback_whose_process_does_not_end(self):
        run = self.job(
            'if [ $RANK = 1 ]; then exec /usr/bin/python3 "$T/thread.py"; fi; exec sleep 100',
        )
        with open(self.path("thread.py"), "w") as file:
            file.write(
                "import threading\n"
                "def load():\n"
                "    raise KeyError('sample 5')\n"
                "threading.Thread(target=load).start()\n"
                "threading.Event().wait()\n"
            )
        stall = self.stall()
        self.assertEqual((stall["kind"], stall["suspects"]), ("after_traceback", "1"), stall)
        self.assertIn("KeyError: 'sample 5'", stall["text"])
        self.end(run)

    def test_ranks_that_finished_leave_one_that_does_not_end(self):
        run = self.job("[ $RANK = 1 ] && exec sleep 100; exit 0")
        stall = self.stall()
        self.assertEqual((stall["kind"], stall["suspects"]), ("in_teardown", "1"), stall)
        self.end(run)

    def test_a_sign_of_life_ends_it(self):
        os.mkfifo(self.path("go"))
        run = self.job('[ $RANK = 2 ] && { read word < "$T/go"; echo $word; }; exec sleep 100')
        self.stall()
        with open(self.path("go"), "w") as go:
            go.write("again\n")
        wait_until(lambda: self.events("stall_over"), "it goes on")
        [over] = self.events("stall_over")
        self.assertEqual(over["how"], "rank 2 goes on")
        run.wait_for_message("no longer stalled")
        self.end(run)

    def test_bursts_of_work_are_no_stall(self):
        # Each in its own way, and never for longer than the threshold.
        run = self.job(
            "case $RANK in "
            "0) for i in 1 2 3 4 5 6 7 8; do sleep 1; echo $i; done;; "
            "1) for i in 1 2 3 4 5 6 7 8; do sleep 1; head -c 30000000 /dev/zero > /dev/null; done;; "
            "*) sleep 8;; esac",
        )
        self.assert_code(run.wait(60), 0)
        self.assertEqual(self.events("stall_found"), [])
        self.assertNotIn("stalled", run.err)

    def test_stacks_are_saved_unless_only_a_warning_is_wanted(self):
        run = self.job("exec sleep 100")
        self.stall()
        wait_until(lambda: self.events("evidence_saved"), "stacks are saved")
        [saved] = self.events("evidence_saved")
        self.assertEqual(saved["why"], "stalled")
        self.assertTrue(os.path.exists(os.path.join(saved["folder"], "rank_2.txt")), saved)
        self.assertIsNone(run.process.poll())  # nothing is stopped
        self.end(run)

    def test_who_differs_only_by_the_stacks_is_named_by_them(self):
        with open(self.path("train.py"), "w") as file:
            file.write(
                "import os, queue, threading\n"
                "def load():\n"
                "    queue.Queue().get()\n"
                "def step():\n"
                "    threading.Event().wait()\n"
                "load() if os.environ['RANK'] == '1' else step()\n"
            )
        run = self.job(
            'exec /usr/bin/python3 "$T/train.py"', "--hang-timeout", f"{THRESHOLD}:fail"
        )
        self.assert_code(run.wait(60), 1)
        # A look may have met one of them awake, and then it differed before its stack was known.
        stalls = self.events("stall_found")
        first, last = stalls[0], stalls[-1]
        self.assertEqual((last["kind"], last["suspects"]), ("rank_missing", "1"), last)
        self.assertEqual(first["since_us"], last["since_us"])
        [failure] = self.events("failure_found")
        self.assertEqual((failure["kind"], failure["rank"]), ("hung", 1), failure)
        self.assertIn("load (train.py:3)", run.err)
        self.assertRegex(run.err, r"victims +ranks 0, 2 \(stopped by muster\)")

    def test_a_warning_alone_saves_nothing(self):
        run = self.job("exec sleep 100", "--hang-timeout", f"{THRESHOLD}:warn")
        self.stall()
        # What would have been saved for the first is there before there is a second.
        os.kill(self.pid_of(1), signal.SIGSTOP)
        self.assertEqual(self.stall(2)["kind"], "stopped")
        self.end(run)
        self.assertEqual(self.events("evidence_saved"), [])

    def test_a_hang_can_be_a_failure_that_is_not_retried(self):
        script = '[ $RANK = 1 ] && exec cat < "$T/never"; exec sleep 100'
        os.mkfifo(self.path("never"))
        run = self.job(script, "--hang-timeout", f"{THRESHOLD}:fail", "--max-restarts", 3)
        self.assert_code(run.wait(60), 1)
        [failure] = self.events("failure_found")
        self.assertEqual((failure["kind"], failure["rank"]), ("hung", 1), failure)
        self.assertIn("rank 1 waits elsewhere than the others", failure["message"])
        self.assertEqual(failure["excerpt_source"], "stacks")
        self.assertIn("rank 1 (local 1)", run.err)
        self.assertEqual(self.events("restart_scheduled"), [])

    def test_a_hang_can_be_one_that_a_restart_heals(self):
        run = self.job(
            '[ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0; exec sleep 100',
            "--hang-timeout", f"{THRESHOLD}:restart", "--max-restarts", 1,
        )  # fmt: skip
        self.assert_code(run.wait(60), 0)
        self.assertEqual(len(self.events("restart_scheduled")), 1)
        self.assertEqual(self.events("failure_found")[0]["kind"], "hung")

    def test_a_hung_python_that_must_die_leaves_the_stacks_of_its_threads(self):
        with open(self.path("train.py"), "w") as file:
            file.write(
                "import threading\n"
                "def load_batch():\n"
                "    threading.Event().wait()\n"
                "def train_step():\n"
                "    threading.Event().wait()\n"
                "threading.Thread(target=load_batch, daemon=True).start()\n"
                "train_step()\n"
            )
        for then in ("fail", "restart"):
            with self.subTest(then):
                shutil.rmtree(self.path("logs"), ignore_errors=True)
                run = self.job(
                    'exec /usr/bin/python3 "$T/train.py"', "--hang-timeout", f"{THRESHOLD}:{then}"
                )
                self.assert_code(run.wait(60), 1)
                [saved] = self.events("evidence_saved")
                sent = self.events("signal_sent")
                self.assertEqual({e["signal"] for e in sent}, {signal.SIGABRT}, sent)
                ends = self.events("worker_exited")
                for end in ends:
                    self.assertEqual(os.WTERMSIG(end["wait_status"]), signal.SIGABRT)
                self.assertLess(saved["seq"], min(e["seq"] for e in sent))
                for rank in range(3):
                    text = read(os.path.join(saved["folder"], f"rank_{rank}.txt")).decode()
                    for function in ("load_batch", "train_step"):
                        self.assertIn(f"python: {function} at ", text)
                    folder = os.path.join(self.run_folder(self.path("logs")), "attempt_0")
                    told = read(os.path.join(folder, str(rank), "stderr.log")).decode()
                    self.assertIn("Fatal Python error: Aborted", told)
                    self.assertIn('train.py", line 3 in load_batch', told)
                    self.assertIn('train.py", line 5 in train_step', told)

    def test_any_program_can_tell_how_far_it_is(self):
        with open(self.path("steps.py"), "w") as file:
            file.write(
                "import os, time\n"
                "for step in range(1, 7):\n"
                "    print(f'{step}/6', file=open(os.environ['MUSTER_PROGRESS'], 'w'))\n"
                "    time.sleep(2)\n"
            )
        run = self.job('exec /usr/bin/python3 "$T/steps.py"', "--http", "127.0.0.1:0", ranks=1)
        api = Api(run)
        wait_until(
            lambda: ((api.json("/status").get("progress") or {}).get("step") or 0) >= 3,
            "its step is shown",
        )
        self.assert_code(run.wait(60), 0)
        self.assertEqual(self.events("stall_found"), [])

    def test_without_a_threshold_nothing_is_said(self):
        run = self.job("sleep 6", "--hang-timeout", 0)
        self.assert_code(run.wait(60), 0)
        self.assertNotIn("stalled", run.err)


class StallsOfSeveralNodes(NodesTest):
    def test_the_rank_of_another_node_is_named_with_its_host(self):
        a, b = self.pair(
            "--hang-timeout", THRESHOLD, workers=2, worker=("sh", "-c", "echo; exec sleep 100")
        )
        for node in (a, b):
            wait_until(lambda node=node: len(node.events("first_output")) >= 2, "all are up")
        [pid] = [e["pid"] for e in b.events("worker_spawned") if e["local_rank"] == 1]
        os.kill(pid, signal.SIGSTOP)
        stall = a.wait_for_event("stall_found", seconds=harness.PATIENCE)
        self.assertEqual((stall["kind"], stall["suspects"]), ("stopped", "3"), stall)
        self.assertIn(f"rank 3 on {self.host_name('b')} is stopped", stall["text"])
        self.assertEqual(b.events("stall_found"), [])  # the coordinator's node says it
        # Each saves its own workers' stacks.
        wait_until(
            lambda: {e["folder"].rpartition("/attempt_")[0] for e in a.events("evidence_saved")}
            == {a.run_folder, b.run_folder},
            "both have saved",
        )
        os.kill(pid, signal.SIGCONT)
        a.signal(signal.SIGTERM)
        self.wait_for_end([a, b], 143)


if __name__ == "__main__":
    harness.main()
