# SPDX-License-Identifier: Apache-2.0
"""muster in jobs of a real Slurm, whose four nodes are this machine (see slurm_cluster.py)."""

import os
import re
import shutil
import socket
import subprocess
import sys
import unittest

import harness
from harness import MusterTest, wait_until
from strays import wait_for_strays

TOOLS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scancel", "scontrol")
HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(os.path.dirname(os.path.dirname(HERE)), "examples", "slurm")

# Each rank leaves its variables in a file of its own.
DUMP = 'env >"$T/part.$RANK.$TORCHELASTIC_RESTART_COUNT"\n' + (
    'mv "$T/part.$RANK.$TORCHELASTIC_RESTART_COUNT" "$T/env.$RANK.$TORCHELASTIC_RESTART_COUNT"'
)


class Slurm(MusterTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        missing = [tool for tool in TOOLS if shutil.which(tool) is None]
        if missing:
            raise unittest.SkipTest(f"no {', '.join(missing)} on this machine")
        if os.geteuid() != 0:
            raise unittest.SkipTest("a Slurm of one's own needs root")

    def setUp(self):
        super().setUp()
        os.mkdir(self.path("slurm"))
        self.keeper = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "slurm_cluster.py"), self.path("slurm")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.addCleanup(self.stop_cluster)
        line = self.keeper.stdout.readline()
        self.assertEqual(line, b"ready\n", self.file("slurm", "ctld.log")[-2000:])
        self.conf = self.path("slurm", "slurm.conf")

    def stop_cluster(self):
        self.tool("scancel", "--full", "--signal=KILL", "--user=root")
        self.keeper.stdin.close()
        self.keeper.wait(harness.PATIENCE)
        self.keeper.stdout.close()
        wait_for_strays(self.running, ["srun"])

    # -- the cluster's tools ----------------------------------------------------------------------

    def environment(self, **changes):
        return super().environment(SLURM_CONF=self.path("slurm", "slurm.conf"), **changes)

    def tool(self, *command):
        """What a tool of Slurm's prints."""
        done = subprocess.run(command, env=self.environment(), stdout=subprocess.PIPE)
        return done.stdout.decode()

    def srun(self, *arguments, nodes=4, tasks=None, more=(), **options):
        """Starts muster on each of the nodes."""
        words = ["srun", f"-N{nodes}", f"-n{tasks or nodes}", "-l", *more, harness.MUSTER]
        return self.start(*arguments, command=words, **options)

    def sbatch(self, text, *words):
        """Submits a job script; its output goes to job.out. Returns the job's id."""
        path = self.script(text, "job.sh")
        out = ("--open-mode=append", "--output=" + self.path("job.out"))
        shown = self.tool("sbatch", "--parsable", "-D", self.dir, *out, *words, path)
        return shown.strip().split(";")[0]

    def wait_for_state(self, job, *states):
        def state():
            shown = re.search(r"JobState=(\w+)", self.tool("scontrol", "show", "job", job))
            return shown and shown.group(1) in states and shown.group(1)

        return wait_until(state, f"job {job} is {' or '.join(states)}: {self.file('job.out')}", 90)

    # -- what ranks left --------------------------------------------------------------------------

    def ranks(self, attempt=0):
        """{rank: its environment} of an attempt."""
        found = {}
        for name in os.listdir(self.dir):
            match = re.fullmatch(rf"env\.(\d+)\.{attempt}", name)
            if match:
                lines = self.file(name).splitlines()
                found[int(match.group(1))] = dict(
                    line.split("=", 1) for line in lines if "=" in line
                )
        return found

    def assert_one_world(self, ranks, size, nodes):
        self.assertEqual(sorted(ranks), list(range(size)))
        for rank, env in ranks.items():
            self.assertEqual(env["WORLD_SIZE"], str(size), rank)
            self.assertEqual(env["GROUP_WORLD_SIZE"], str(nodes), rank)
            self.assertEqual(env["GROUP_RANK"], env["SLURM_NODEID"], rank)
            self.assertEqual(env["MASTER_ADDR"], ranks[0]["MASTER_ADDR"], rank)
            self.assertEqual(env["MASTER_PORT"], ranks[0]["MASTER_PORT"], rank)
            self.assertEqual(env["TORCHELASTIC_RUN_ID"], ranks[0]["TORCHELASTIC_RUN_ID"], rank)

    # -- srun -------------------------------------------------------------------------------------

    def test_srun_needs_no_flag(self):
        run = self.srun("--nproc-per-node", "2", "--no-python", self.script(DUMP)).wait()
        self.assert_code(run, 0)
        ranks = self.ranks()
        self.assert_one_world(ranks, 8, 4)
        self.assertEqual(ranks[0]["TORCHELASTIC_RUN_ID"], "slurm-1.0")
        self.assertEqual(ranks[0]["MASTER_PORT"], str(12000 + 1))
        for node in range(4):
            said = f"Slurm job 1.0: 4 nodes, this is node {node}, meeting at 127.0.0.1:12001"
            self.assertIn(f"{node}: muster: {said}", run.err)

    def test_srun_of_an_elastic_job(self):
        words = ("--nnodes", "2:4", "--no-python", self.script(DUMP))
        self.assert_code(self.srun(*words).wait(), 0)
        self.assert_one_world(self.ranks(), 4, 4)

    def test_a_failure_is_everybodys_exit_code(self):
        script = self.script('[ "$RANK" = 2 ] && { echo "rank two is out" >&2; exit 7; }; sleep 60')
        run = self.srun("--no-python", script).wait()
        self.assert_code(run, 7)
        for node in range(4):
            self.assertRegex(run.err, rf"(?m)^{node}: .*rank 2\b.*exit")

    def test_a_failure_restarts_all_nodes(self):
        fail = '[ "$RANK$TORCHELASTIC_RESTART_COUNT" = 30 ] && exit 3; exit 0'
        run = self.srun(
            "--max-restarts", "1", "--no-python", self.script(DUMP + "\n" + fail)
        ).wait()
        self.assert_code(run, 0)
        self.assert_one_world(self.ranks(1), 4, 4)

    def test_several_tasks_a_node_are_refused_with_the_way_out(self):
        run = self.srun("--no-python", self.script(DUMP), tasks=8).wait()
        self.assert_code(run, 2)
        self.assertIn("8 tasks on 4 nodes", run.err)
        self.assertIn("--ntasks-per-node=1", run.err)
        self.assertEqual(self.ranks(), {})

    def test_a_step_on_some_nodes_meets_on_the_first_of_them(self):
        text = f"""
            srun -N2 -n2 -r2 {harness.MUSTER} --no-python {self.script(DUMP)}
        """
        self.wait_for_state(self.sbatch(text, "-N4"), "COMPLETED")
        ranks = self.ranks()
        self.assert_one_world(ranks, 2, 2)
        self.assertEqual([ranks[n]["SLURMD_NODENAME"] for n in (0, 1)], ["n3", "n4"])

    # -- sbatch -----------------------------------------------------------------------------------

    def test_a_batch_script_outside_of_srun_is_one_node(self):
        job = self.sbatch(f"{harness.MUSTER} --no-python {self.script(DUMP)}", "-N4")
        self.wait_for_state(job, "COMPLETED")
        self.assertEqual(self.ranks()[0]["WORLD_SIZE"], "1")

    def test_explicit_flags_work_as_torchruns_do(self):
        self.script(DUMP)
        port = free_port()
        flags = (
            "--nnodes $SLURM_NNODES --node_rank $SLURM_NODEID --nproc_per_node 1 "
            f"--master_addr 127.0.0.1 --master_port {port}"
        )
        text = f"""
            srun bash -c '{harness.MUSTER} {flags} --no-python $T/w.sh'
            srun {harness.MUSTER} --nnodes 4 --rdzv-backend c10d --rdzv-id j \\
                --rdzv-endpoint 127.0.0.1:{port} --max-restarts 1 --no-python $T/again.sh
        """
        self.script(DUMP.replace("$TORCHELASTIC_RESTART_COUNT", "again"), "again.sh")
        self.wait_for_state(self.sbatch(text, "-N4"), "COMPLETED")
        self.assert_one_world(self.ranks(), 4, 4)
        self.assertEqual(self.ranks()[0]["MASTER_PORT"], str(port))
        again = self.ranks("again")
        self.assertEqual(sorted(again), [0, 1, 2, 3])
        self.assertEqual(again[0]["TORCHELASTIC_RUN_ID"], "j")

    def test_preemption_reaches_every_rank_and_the_code_says_so(self):
        catch = 'trap \'echo "saved by $RANK"; echo yes >"$T/saved.$RANK"; exit 0\' TERM\n'
        wait = 'echo up >"$T/up.$RANK"; while :; do sleep 0.1; done'
        run = self.srun("--no-python", self.script(catch + wait))
        for rank in range(4):
            self.wait_for_file(f"up.{rank}")
        self.tool("scancel", "--signal=TERM", "1.0")
        run.wait()
        self.assert_code(run, 143)
        self.assertEqual([self.file(f"saved.{rank}") for rank in range(4)], ["yes\n"] * 4)

    def test_a_requeued_job_starts_anew_under_another_name(self):
        first = 'if [ -z "$SLURM_RESTART_COUNT" ]; then echo up >"$T/up.$RANK"; sleep 600; fi'
        script = self.script(f"{first}\n{DUMP}")
        job = self.sbatch(f"srun {harness.MUSTER} --no-python {script}", "-N4", "--requeue")
        for rank in range(4):
            self.wait_for_file(f"up.{rank}")
        self.tool("scontrol", "requeue", job)
        self.wait_for_state(job, "COMPLETED")
        ranks = self.ranks()
        self.assert_one_world(ranks, 4, 4)
        self.assertEqual(ranks[0]["TORCHELASTIC_RUN_ID"], f"slurm-{job}.0-restart-1")

    def test_the_example_runs(self):
        with open(os.path.join(EXAMPLES, "train.sbatch")) as file:
            text = file.read()
        train = "import os; open(os.environ['T'] + '/ran.' + os.environ['RANK'], 'w').write('x')"
        self.script(train, "train.py")
        os.mkdir(self.path("bin"))
        os.symlink(harness.MUSTER, self.path("bin", "muster"))
        with open(self.path("job.sh"), "w") as file:
            file.write(text)
        # This Slurm has no GPUs and small nodes.
        less = ("--gpus-per-node=0", "--cpus-per-task=1", "--nodes=4")
        env = self.environment(PATH=self.path("bin") + ":" + os.environ["PATH"])
        words = ["sbatch", "--parsable", "-D", self.dir, *less, self.path("job.sh")]
        shown = subprocess.run(words, env=env, stdout=subprocess.PIPE, check=True).stdout.decode()
        self.wait_for_state(shown.strip(), "COMPLETED")
        ran = {name for name in os.listdir(self.dir) if name.startswith("ran.")}
        self.assertGreaterEqual(len(ran), 4)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


if __name__ == "__main__":
    harness.main()
