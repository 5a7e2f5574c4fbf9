# SPDX-License-Identifier: Apache-2.0
"""Rows 20 to 29: what a worker finds around itself."""

import json
import os

import harness
from conformance import ConformanceTest, row

UUID = r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"

# Prints what a process is made of. Run by the worker itself: python -c would be its child.
LOOK_AROUND = """
import json, os, signal
ignored = [s for s in signal.Signals if signal.getsignal(s) == signal.SIG_IGN]
blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [])
fds = os.listdir("/proc/self/fd")
facts = {
    "pid": os.getpid(), "sid": os.getsid(0), "pgid": os.getpgid(0), "cwd": os.getcwd(),
    "fds": sorted(int(fd) for fd in fds if os.path.exists(f"/proc/self/fd/{fd}")),
    "stdin": os.readlink("/proc/self/fd/0"),
    "ignored": [s.name for s in ignored if s not in (signal.SIGPIPE, signal.SIGXFSZ)],
    "blocked": sorted(int(s) for s in blocked),
}
with open(os.environ["T"] + "/facts." + os.environ["RANK"], "w") as file:
    json.dump(facts, file)
"""


class Environment(ConformanceTest):
    @row(
        20,
        "bare tr -> MASTER_ADDR = FQDN, random MASTER_PORT, a UUID as run id, "
        "USE_AGENT_STORE True, RESTART_COUNT 0, all ranks 0, no OMP_NUM_THREADS",
        "different: MASTER_ADDR is 127.0.0.1, for which no name has to be looked up",
    )
    def test_bare(self):
        self.assert_code(self.muster("--no-python", self.dump()), 0)
        env = self.env_of()
        expected = {
            "MASTER_ADDR": "127.0.0.1",
            "TORCHELASTIC_USE_AGENT_STORE": "True",
            "TORCHELASTIC_RESTART_COUNT": "0",
            "TORCHELASTIC_MAX_RESTARTS": "0",
            "LOCAL_RANK": "0",
            "RANK": "0",
            "GROUP_RANK": "0",
            "ROLE_RANK": "0",
            "WORLD_SIZE": "1",
            "LOCAL_WORLD_SIZE": "1",
            "GROUP_WORLD_SIZE": "1",
            "ROLE_WORLD_SIZE": "1",
            "ROLE_NAME": "default",
            "TORCHELASTIC_SIGNALS_TO_HANDLE": "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
        }
        self.assertEqual(expected, {name: env.get(name) for name in expected})
        self.assertRegex(env["MASTER_PORT"], r"^[1-9][0-9]{3,4}$")
        self.assertRegex(env["TORCHELASTIC_RUN_ID"], UUID)
        self.assertTrue(env["TORCHELASTIC_ERROR_FILE"].endswith("/attempt_0/0/error.json"))
        self.assertNotIn("OMP_NUM_THREADS", env)

    @row(
        21,
        "the same with --rdzv-id mine --master-addr 10.9.8.7 -> both ignored; with --master-port "
        "29611 -> 127.0.0.1, 29611, run id none",
        "different: what is ignored is named in a warning",
    )
    def test_static_options(self):
        words = ("--rdzv-id", "mine", "--master-addr", "10.9.8.7", "--no-python", self.dump())
        run = self.muster(*words)
        self.assert_code(run, 0)
        self.assertEqual(self.env_of()["MASTER_ADDR"], "127.0.0.1")
        for option in ("--rdzv-id", "--master-addr"):
            if option == "--rdzv-id" and self.env_of()["TORCHELASTIC_RUN_ID"] == "mine":
                continue
            self.assertIn(option, run.err)
        run = self.muster("--master-port", "29611", "--no-python", self.dump())
        self.assert_code(run, 0)
        env = self.env_of()
        got = env["MASTER_ADDR"], env["MASTER_PORT"], env["TORCHELASTIC_RUN_ID"]
        self.assertEqual(got, ("127.0.0.1", "29611", "none"))

    @row(22, "--standalone beats --master-port and --rdzv-id; --local-addr is MASTER_ADDR")
    def test_standalone(self):
        words = ("--standalone", "--master-port", "1234", "--rdzv-id", "x", "--local-addr")
        self.assert_code(self.muster(*words, "127.0.0.1", "--no-python", self.dump()), 0)
        env = self.env_of()
        self.assertEqual(env["MASTER_ADDR"], "127.0.0.1")
        self.assertNotEqual(env["MASTER_PORT"], "1234")
        self.assertRegex(env["TORCHELASTIC_RUN_ID"], UUID)

    @row(
        23,
        "--rdzv-id '' -> warning, the run id is a long decimal number",
        "different: refused, because on several nodes each would get an id of its own",
    )
    def test_empty_run_id(self):
        words = ("--master-port", "29612", "--rdzv-id", "", "--no-python", self.dump())
        self.refused(*words, says="--rdzv-id")

    @row(
        24,
        "two workers without OMP_NUM_THREADS -> a banner and 1; set to empty -> no banner, empty",
        "different: one quiet line instead of the banner",
    )
    def test_omp_threads(self):
        two = ("--nproc-per-node", "2", "--no-python", self.dump())
        run = self.muster(*two)
        self.assertEqual(self.env_of(1)["OMP_NUM_THREADS"], "1")
        self.assertEqual(len([line for line in run.err.splitlines() if "OMP_NUM" in line]), 1)
        run = self.muster(*two, env={"OMP_NUM_THREADS": ""})
        self.assertEqual(self.env_of(1)["OMP_NUM_THREADS"], "")
        self.assertNotIn("OMP_NUM", run.err)
        self.muster("--omp-threads", "auto", *two)
        share = max(1, len(os.sched_getaffinity(0)) // 2)
        self.assertEqual(self.env_of(1)["OMP_NUM_THREADS"], str(share))

    @row(
        25,
        "--virtual-local-rank: LOCAL_RANK 0 for all, each its own entry of CUDA_VISIBLE_DEVICES; "
        "without the variable the local rank; a list too short -> exit 1",
        "different: exit 2 for the short list",
    )
    def test_virtual_local_rank(self):
        two = ("--virtual-local-rank", "--nproc-per-node", "2", "--no-python", self.dump())
        for given, expected in (("5, 7", ["5", "7"]), (None, ["0", "1"])):
            with self.subTest(given=given):
                self.assert_code(self.muster(*two, env={"CUDA_VISIBLE_DEVICES": given}), 0)
                for rank in (0, 1):
                    env = self.env_of(rank)
                    self.assertEqual((env["LOCAL_RANK"], env["RANK"]), ("0", str(rank)))
                    self.assertEqual(env["CUDA_VISIBLE_DEVICES"], expected[rank])
                    os.remove(self.path(f"env.{rank}"))
        self.refused(*two, env={"CUDA_VISIBLE_DEVICES": "5"}, says="CUDA_VISIBLE_DEVICES")

    @row(
        26,
        "RANK=9 around tr -> the worker sees its own; TORCH_NCCL_ASYNC_ERROR_HANDLING=3 stays, "
        "unset -> 1",
    )
    def test_inherited_variables(self):
        self.muster("--no-python", self.dump(), env={"RANK": "9", "MINE": "kept"})
        env = self.env_of()
        self.assertEqual((env["RANK"], env["MINE"]), ("0", "kept"))
        self.assertEqual(env["TORCH_NCCL_ASYNC_ERROR_HANDLING"], "1")
        self.muster("--no-python", self.dump(), env={"TORCH_NCCL_ASYNC_ERROR_HANDLING": "3"})
        self.assertEqual(self.env_of()["TORCH_NCCL_ASYNC_ERROR_HANDLING"], "3")

    @row(27, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 -> USE_AGENT_STORE False")
    def test_worker_hosted_store(self):
        self.muster("--no-python", self.dump(), env={"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"})
        self.assertEqual(self.env_of()["TORCHELASTIC_USE_AGENT_STORE"], "False")

    @row(28, "TORCHELASTIC_ENABLE_FILE_TIMER=1 -> TORCHELASTIC_TIMER_FILE names a FIFO")
    def test_timer_file(self):
        worker = self.script('test -p "$TORCHELASTIC_TIMER_FILE"')
        on = {"TORCHELASTIC_ENABLE_FILE_TIMER": "1"}
        self.assert_code(self.muster("--no-python", worker, env=on), 0)

    @row(
        29,
        "worker: own session and process group, stdin inherited, no extra open files, cwd of the "
        "launcher, no ignored signals",
        "different: stdin goes to one rank (--stdin-rank), the others read /dev/null",
    )
    def test_process_attributes(self):
        worker = self.script(LOOK_AROUND, "look.py")
        open(self.path("input"), "w").close()
        with open(self.path("input")) as stdin:
            run = self.muster("--nproc-per-node", "2", worker, stdin=stdin)
        self.assert_code(run, 0)
        for rank in (0, 1):
            facts = json.loads(self.file(f"facts.{rank}"))
            self.assertEqual((facts["sid"], facts["pgid"]), (facts["pid"], facts["pid"]))
            self.assertEqual(facts["fds"], [0, 1, 2])
            self.assertEqual(facts["cwd"], self.dir)
            self.assertEqual((facts["ignored"], facts["blocked"]), ([], []))
            self.assertEqual(facts["stdin"], self.path("input") if rank == 0 else "/dev/null")


if __name__ == "__main__":
    harness.main()
