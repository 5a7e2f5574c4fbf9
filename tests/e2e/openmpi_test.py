# SPDX-License-Identifier: Apache-2.0
"""muster under a real mpirun (Open MPI), whose other hosts are names of this machine.

mpirun starts its daemons through an agent of ours that gives each a host name of its own instead of
going to that host.
"""

import os
import re
import shutil
import socket
import subprocess
import unittest

import harness
from harness import MusterTest, wait_until
from strays import wait_for_strays

AGENT = """
host=$1
shift
exec unshare --uts sh -c 'hostname "$0"; exec sh -c "$*"' "$host" "$@"
"""
DUMP = 'env >"$T/part.$RANK" && mv "$T/part.$RANK" "$T/env.$RANK"'


def can_unshare():
    done = subprocess.run(["unshare", "--uts", "hostname", "elsewhere"], stderr=subprocess.DEVNULL)
    return done.returncode == 0


class OpenMpi(MusterTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if shutil.which("mpirun") is None:
            raise unittest.SkipTest("no mpirun on this machine")
        shown = subprocess.run(["mpirun", "--version"], stdout=subprocess.PIPE).stdout.decode()
        if "Open MPI" not in shown:
            raise unittest.SkipTest("mpirun is not Open MPI's")
        if os.geteuid() != 0 or not can_unshare():
            raise unittest.SkipTest("host names of one's own need root")

    def setUp(self):
        super().setUp()
        self.addCleanup(self.take_strays)

    def take_strays(self):
        """A daemon's children come to us when it ends, so all of them must have ended first."""
        self._stop_what_runs()
        wait_until(lambda: not harness.marked_processes(self.mark), "mpirun's daemons have ended")
        wait_for_strays(self.running)

    def environment(self, **changes):
        root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        return super().environment(**{**root, **changes})

    def mpirun(self, *arguments, hosts=None, more=("--map-by", "ppr:1:node"), **options):
        """Starts muster on each of the hosts, the first of which is mpirun's own."""
        hosts = hosts or [socket.gethostname(), "b", "c"]
        agent = self.script(AGENT, "agent")
        words = ["mpirun", "--host", ",".join(hosts), "--mca", "plm_rsh_agent", agent]
        return self.start(*arguments, command=[*words, *more, harness.MUSTER], **options)

    def ranks(self):
        found = {}
        for name in os.listdir(self.dir):
            match = re.fullmatch(r"env\.(\d+)", name)
            if match:
                lines = self.file(name).splitlines()
                found[int(match.group(1))] = dict(
                    line.split("=", 1) for line in lines if "=" in line
                )
        return found

    def assert_one_world(self, size, nodes):
        ranks = self.ranks()
        self.assertEqual(sorted(ranks), list(range(size)))
        for rank, env in ranks.items():
            self.assertEqual(env["WORLD_SIZE"], str(size), rank)
            self.assertEqual(env["GROUP_WORLD_SIZE"], str(nodes), rank)
            self.assertEqual(env["GROUP_RANK"], env["OMPI_COMM_WORLD_RANK"], rank)
            for name in ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID"):
                self.assertEqual(env[name], ranks[0][name], rank)

    def test_one_start_a_node_is_one_job(self):
        run = self.mpirun("--nproc-per-node", "2", "--no-python", self.script(DUMP)).wait()
        self.assert_code(run, 0)
        self.assert_one_world(6, 3)
        self.assertRegex(run.err, r"Open MPI job \d+: 3 nodes, this is node 2, meeting at ")

    def test_an_endpoint_that_is_given_is_used(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        words = ("--rdzv-endpoint", f"127.0.0.1:{port}", "--no-python", self.script(DUMP))
        self.assert_code(self.mpirun(*words).wait(), 0)
        self.assert_one_world(3, 3)
        self.assertEqual(self.ranks()[0]["MASTER_PORT"], str(port))

    def test_a_rank_0_elsewhere_needs_an_endpoint(self):
        run = self.mpirun("--no-python", self.script(DUMP), hosts=["b", "c"]).wait()
        self.assert_code(run, 2)
        self.assertIn("rank 0 is not on mpirun's machine", run.err)
        self.assertIn("give --rdzv-endpoint HOST:PORT", run.err)
        self.assertEqual(self.ranks(), {})

    def test_several_starts_a_node_are_refused_with_the_way_out(self):
        hosts = [socket.gethostname() + ":2", "b:2"]
        run = self.mpirun("--no-python", self.script(DUMP), hosts=hosts, more=("-n", "4")).wait()
        self.assert_code(run, 2)
        self.assertIn("starts muster 2 times on this node", run.err)
        self.assertIn("--map-by ppr:1:node", run.err)

    def test_several_starts_on_one_machine_are_jobs_of_their_own(self):
        script = self.script("exit 0")
        words = ["mpirun", "--oversubscribe", "-n", "2", harness.MUSTER]
        run = self.start("--no-python", script, command=words).wait()
        self.assert_code(run, 0)
        self.assertIn("each is a job of its own", run.err)

    def test_a_failure_ends_all(self):
        script = self.script('[ "$RANK" = 1 ] && exit 9; sleep 60')
        run = self.mpirun("--no-python", script).wait()
        self.assert_code(run, 9)

    def test_mpiruns_end_is_the_workers_end(self):
        wait = 'echo up >"$T/up.$RANK"; exec sleep 600'
        run = self.mpirun("--no-python", self.script(wait))
        for rank in range(3):
            self.wait_for_file(f"up.{rank}")
        run.signal(15)
        run.wait()
        self.assertNotEqual(run.code, 0)
        wait_until(lambda: not harness.marked_processes(self.mark), "no process is left")


if __name__ == "__main__":
    harness.main()
