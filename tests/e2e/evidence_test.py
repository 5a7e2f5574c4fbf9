# SPDX-License-Identifier: Apache-2.0
"""What stands around a death: memory and disks that ran out, a wait in the store."""

import ctypes
import json
import os
import subprocess

import harness
from harness import MusterTest

MNT_DETACH = 2
MEMORY = "/sys/fs/cgroup/memory"
HEADING = "last lines of both streams, in the order in which they came:"
LIMIT = 512 << 20  # far above what muster takes with sanitizers
GREEDY = """
[ $RANK = 0 ] && exec sleep 600
echo taking all
exec tail /dev/zero
"""


ALTERNATING = """
import os, sys, time

folder = os.path.dirname(os.environ["TORCHELASTIC_ERROR_FILE"])
for word, stream, name in (
    ("one", sys.stdout, "stdout"),
    ("two", sys.stderr, "stderr"),
    ("three", sys.stdout, "stdout"),
    ("four", sys.stderr, "stderr"),
):
    print(word, file=stream, flush=True)
    path = os.path.join(folder, name + ".log")
    while not os.path.exists(path) or word not in open(path).read():
        time.sleep(0.01)
sys.exit(3)
"""

WAITING = """
import os, socket, struct

address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
with socket.create_connection(address, 30) as store:
    store.sendall(struct.pack("<BIBI", 0, 0x3C85F7CE, 13, os.getpid()))
    store.recv(4)
    key = b"/ready/7"
    store.sendall(struct.pack("<BQQ", 6, 1, len(key)) + key)
    store.settimeout(0.5)
    store.recv(1)
"""


class EvidenceTest(MusterTest):
    def found(self, run, log_dir="L"):
        """The first failure in the run's events."""
        text = self.file(self.run_folder(self.path(log_dir)), "events.jsonl")
        events = [json.loads(line) for line in text.splitlines()]
        failures = [event for event in events if event["event"] == "failure_found"]
        self.assertTrue(failures, run.err)
        return failures[0]


class LastLines(EvidenceTest):
    def test_the_last_lines_of_both_streams_are_told_in_their_order(self):
        """A worker that writes on, each time, when the line before is in its file."""
        worker = self.script(ALTERNATING, "alternating.py")
        summary = self.path("s.json")
        run = self.muster("--summary", summary, "--log-dir", self.path("L"), worker)
        self.assert_code(run, 3)
        cause = json.loads(self.file("s.json"))["root_cause"]
        self.assertEqual((cause["kind"], cause["excerpt"]), ("exit_code", ["two", "four"]))
        self.assertEqual(
            cause["evidence"],
            [HEADING, "stdout: one", "stderr: two", "stdout: three", "stderr: four"],
        )
        self.assertIn(HEADING, run.err)


class Memory(EvidenceTest):
    """Needs a cgroup v1 that may be written, as root on many machines."""

    def setUp(self):
        super().setUp()
        own = next(
            (
                line
                for line in harness.read("/proc/self/cgroup").decode().splitlines()
                if ":memory:" in line
            ),
            "",
        )
        parent = MEMORY + own.rpartition(":")[2]
        self.group = os.path.join(parent, os.path.basename(self.dir))
        try:
            os.mkdir(self.group)
        except OSError as error:
            self.skipTest(f"no cgroup v1 for memory: {error}")
        self.addCleanup(self._remove_group)
        with open(os.path.join(self.group, "memory.limit_in_bytes"), "w") as file:
            file.write(str(LIMIT))

    def _remove_group(self):
        self._stop_what_runs()  # whoever is in it

        def gone():
            try:
                os.rmdir(self.group)
            except OSError:
                return False
            return True

        harness.wait_until(gone, "the cgroup is empty", 10)

    def start_limited(self, *arguments):
        """Starts muster in the cgroup."""
        enter = f'echo $$ >{self.group}/cgroup.procs && exec "$@"'
        return self.start(*arguments, command=["/bin/sh", "-c", enter, "sh", harness.MUSTER])

    def test_a_rank_that_took_all_memory_is_named_with_the_limit(self):
        run = self.start_limited(
            "--nproc-per-node", "2", "--log-dir", self.path("L"), "--no-python", self.script(GREEDY)
        ).wait()
        self.assert_code(run, 137)
        found = self.found(run)
        self.assertEqual((found["rank"], found["kind"]), (1, "oom_kill"))
        self.assertIn("run out of memory", found["message"])
        self.assertIn("run out of memory", run.err)
        told = "\n".join(found["evidence"])
        self.assertIn("killed 1 process for want of memory, limit 512 MiB", told)
        self.assertRegex(told, r"most memory that it had: \d+ MiB")
        self.assertIn(found["line_source"], ("kernel log", "cgroup"))
        self.assertRegex(found["line"], "(?i)killed (1 )?process")

    def test_a_rank_that_was_killed_by_hand_is_not_blamed_on_memory(self):
        worker = self.script("[ $RANK = 0 ] && exec sleep 600; kill -9 $$")
        words = ("--nproc-per-node", "2", "--log-dir", self.path("L"), "--no-python", worker)
        run = self.start_limited(*words).wait()
        self.assert_code(run, 137)
        found = self.found(run)
        self.assertEqual((found["rank"], found["kind"]), (1, "killed"))
        self.assertNotIn("for want of memory", "\n".join(found["evidence"]))


class Disk(EvidenceTest):
    def test_the_folder_on_the_full_disk_is_named(self):
        home = self.path("home")
        mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", home]
        if subprocess.run(mount, check=False, stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("no file system can be mounted")
        self.addCleanup(subprocess.run, ["umount", "-l", home], check=True)
        worker = self.script("[ $RANK = 0 ] && exec sleep 600; cat /dev/zero >$HOME/checkpoint")
        run = self.muster(
            "--nproc-per-node", "2", "--log-dir", self.path("L"), "--no-python", worker
        )
        found = self.found(run)
        self.assertEqual((found["rank"], found["kind"]), (1, "disk_full"))
        self.assertIn(f"{home} (HOME) has no room: 0 B left", found["evidence"])


class SilentFileSystem(EvidenceTest):
    """A home on a file system that never answers."""

    def setUp(self):
        super().setUp()
        libc = ctypes.CDLL(None, use_errno=True)
        home = self.path("home").encode()
        try:
            # Nobody reads what the kernel asks.
            device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            self.skipTest(f"no FUSE: {error}")
        # The device first: then the kernel knows that no answer will come.
        self.addCleanup(libc.umount2, home, MNT_DETACH)
        self.addCleanup(os.close, device)
        options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
        if libc.mount(b"none", home, b"fuse", 0, options) != 0:
            self.skipTest(f"no file system can be mounted: errno {ctypes.get_errno()}")

    def test_the_verdict_does_not_wait_for_it(self):
        run = self.muster("--log-dir", self.path("L"), "--no-python", self.script("exit 3"))
        self.assert_code(run, 3)
        found = self.found(run)
        self.assertEqual(found["kind"], "exit_code")
        silent = f"the file system of {self.path('home')} (HOME) does not answer"
        self.assertIn(silent, found["evidence"])
        text = self.file(self.run_folder(self.path("L")), "events.jsonl")
        events = [json.loads(line) for line in text.splitlines()]
        died = next(event for event in events if event["event"] == "worker_exited")
        waited = (found["mono_us"] - died["mono_us"]) / 1e6
        self.assertGreater(waited, 0.4)
        self.assertLess(waited, 5)  # half a second, on a machine with nothing else to do


class Store(EvidenceTest):
    def test_the_key_that_a_rank_waited_for_is_told(self):
        run = self.muster("--log-dir", self.path("L"), self.script(WAITING, "wait.py"))
        self.assert_code(run, 1)
        found = self.found(run)
        self.assertIn("it waited in the store for /ready/7", found["evidence"])


if __name__ == "__main__":
    harness.main(may_skip=True)
