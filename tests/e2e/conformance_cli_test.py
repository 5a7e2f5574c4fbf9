# SPDX-License-Identifier: Apache-2.0
"""Rows 1 to 19: the command line."""

import os

import harness
from conformance import PEER, ConformanceTest, row


class CommandLine(ConformanceTest):
    @row(1, "tr without arguments -> usage and what is required on stderr, exit 2")
    def test_no_arguments(self):
        run = self.refused(says="script")
        self.assertIn("usage", run.err.lower())
        self.assertEqual(run.out, "")

    @row(2, "tr --help -> help on stdout, exit 0; an unknown option -> named, exit 2")
    def test_help_and_unknown_option(self):
        run = self.muster("--help")
        self.assert_code(run, 0)
        self.assertIn("--nproc-per-node", run.out)
        if not PEER:
            self.assertIn("PET_NPROC_PER_NODE", run.out)
        self.assertEqual(run.err, "")
        self.refused("--foo", self.words(), says="--foo")

    @row(
        3,
        "both spellings; --ro r1 sets the role; --nproc-per 2 works; --nproc 2 -> ambiguous, 2",
        "different: --nproc abbreviates one option in its two spellings, so it is not ambiguous",
    )
    def test_spellings_and_prefixes(self):
        self.refused("--m", "2", self.words(), says="--m")  # --max-restarts, --master-addr, ...
        spellings = ["--nproc_per_node=2"], ["--nproc-per-node", "2"], ["--nproc-per", "2"]
        for words in (
            *spellings,
            ["--nproc_per_node", "2"],
            ["--nproc-per-node=2"],
            ["--nproc", "2"],
        ):
            with self.subTest(words=words):
                self.assert_code(self.muster(*words, "--ro", "r1", "--no-python", self.dump()), 0)
                self.assertEqual(self.env_of(1)["ROLE_NAME"], "r1")
                os.remove(self.path("env.1"))

    @row(4, "everything after the script reaches the worker unchanged")
    def test_arguments_after_the_script(self):
        words = ["--nnodes", "7", "-x", "--help", "--d", "3", "--nproc", "3", "-r=16", "--", ""]
        self.assert_code(self.muster("--no-python", self.words(), *words), 0)
        self.assertEqual(self.args_of(), words)

    @row(5, "the first -- is dropped: before the script, else directly after it")
    def test_double_dash(self):
        for before, after, got in (
            (["--"], ["--", "a"], ["--", "a"]),
            ([], ["--", "a"], ["a"]),
            ([], ["a", "--", "b"], ["a", "--", "b"]),
        ):
            with self.subTest(before=before, after=after):
                self.assert_code(self.muster("--no-python", *before, self.words(), *after), 0)
                self.assertEqual(self.args_of(), got)

    @row(
        6,
        "worker arguments a$$b ${local_rank} $x -> a$b, the local rank, $x",
        "different: $$ is left alone, so that a regex or shell fragment passes unchanged",
    )
    def test_substitution_in_arguments(self):
        words = ["a$$b", "${local_rank}", "$x", "r=${local_rank}.log"]
        self.assert_code(self.muster("--nproc-per-node=2", "--no-python", self.words(), *words), 0)
        for rank in (0, 1):
            self.assertEqual(self.args_of(rank), ["a$$b", f"{rank}", "$x", f"r={rank}.log"])

    @row(7, "PET_NPROC_PER_NODE=2 -> two workers; the command line wins")
    def test_defaults_from_the_environment(self):
        pet = {"PET_NPROC_PER_NODE": "2"}
        self.assert_code(
            self.muster("--nproc-per-node", "1", "--no-python", self.dump(), env=pet), 0
        )
        self.assertEqual(self.env_of()["WORLD_SIZE"], "1")
        self.assert_code(self.muster("--no-python", self.dump(), env=pet), 0)
        self.assertEqual(self.env_of(1)["WORLD_SIZE"], "2")

    @row(
        8,
        "PET_MAX_RESTARTS=abc -> exit 2; PET_STANDALONE=true, even with --help -> exit 1; "
        "PET_START_METHOD=foo -> accepted; --start-method foo -> exit 2",
        "different: bad PET_ values are all usage errors, and --help always helps",
    )
    def test_bad_values_in_the_environment(self):
        self.refused(self.words(), env={"PET_MAX_RESTARTS": "abc"}, says="abc")
        self.assert_code(self.muster("--help", env={"PET_STANDALONE": "maybe"}), 0)
        self.refused(self.words(), env={"PET_STANDALONE": "maybe"}, says="maybe")
        self.refused(self.words(), env={"PET_START_METHOD": "foo"}, says="foo")
        self.refused("--start-method", "foo", self.words(), says="foo")

    @row(
        9,
        "bad --nnodes, --max-restarts, --nproc-per-node, --monitor-interval, --shutdown-timeout "
        "-> exit 1 before any worker starts",
        "different: exit 2, as for every usage error, naming the value",
    )
    def test_bad_numbers(self):
        for option, value in (
            *(("--nnodes", value) for value in ("1:2:3", "x", "0", "2:1")),
            ("--max-restarts", "-1"),
            *(("--nproc-per-node", value) for value in ("0", "foo")),
            ("--monitor-interval", "0"),
            ("--shutdown-timeout", "-1"),
        ):
            with self.subTest(option=option, value=value):
                run = self.refused(f"{option}={value}", "--no-python", self.words(), says=value)
                self.assertIn(option, run.err)
        bad = {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "abc"}
        self.refused("--no-python", self.words(), env=bad, says="TORCH_ELASTIC_SHUTDOWN_TIMEOUT")

    @row(
        10,
        "--nproc-per-node gpu / xpu without such devices -> exit 1; auto and cpu -> CPU count; "
        "' 1_0 ' -> 10 workers",
        "different: exit 2; CPUs are those that this process may use",
    )
    def test_workers_by_device(self):
        if not os.path.exists("/dev/nvidiactl"):
            self.refused("--nproc-per-node", "gpu", "--no-python", self.words(), says="gpu")
        self.refused("--nproc-per-node", "xpu", "--no-python", self.words(), says="xpu")
        cpus = str(len(os.sched_getaffinity(0)))
        for value, world in (("cpu", cpus), ("auto", cpus), (" 1_0 ", "10")):
            with self.subTest(value=value):
                run = self.muster("--nproc-per-node", value, "--no-python", self.dump())
                self.assert_code(run, 0)
                self.assertEqual(self.env_of()["WORLD_SIZE"], world)

    @row(
        11,
        "-r 4, -r 10:1, --local-ranks-filter a -> exit 1; -r3 and -t 0:1,1:3 accepted",
        "different: exit 2, and ranks of several digits can be named",
    )
    def test_stream_maps(self):
        self.refused("-r", "4", "--no-python", self.words(), says="4")
        self.refused("--local-ranks-filter", "a", "--no-python", self.words(), says="a")
        self.assert_code(self.muster("-r3", "--no-python", self.words()), 0)
        two = ("--nproc-per-node", "2", "--no-python", self.words())
        self.assert_code(self.muster("-t", "0:1,1:3", *two), 0)
        eleven = ("--nproc-per-node", "11", "--no-python", self.script("echo out; echo err >&2"))
        self.assert_code(self.muster("-r", "10:1", "--log-dir", self.path("L"), *eleven), 0)
        folder = self.run_folder(self.path("L"))
        self.assertEqual(self.file(folder, "attempt_0", "10", "stdout.log"), "out\n")

    @row(
        12,
        "--rdzv-conf a, =b, backend=b; --rdzv-backend foo or empty -> exit 1",
        "different: exit 2, naming the offending text",
    )
    def test_bad_rendezvous(self):
        for words, says in (
            (["--rdzv-conf", "a"], "a"),
            (["--rdzv-conf", "=b"], "=b"),
            (["--rdzv-conf", "backend=b"], "backend"),
            (["--rdzv-backend", "foo"], "foo"),
            (["--rdzv-backend", ""], "--rdzv-backend"),
        ):
            with self.subTest(words=words):
                self.refused(*words, "--no-python", self.words(), says=says)

    @row(
        13,
        "--rdzv-endpoint localhost -> exit 1 with a hint to --master-port; localhost:99999 -> "
        "exit 1; [::1]:P -> MASTER_ADDR ::1",
        "different: exit 2 for the bad ones",
    )
    def test_endpoints(self):
        worker = ("--no-python", self.dump())
        self.refused("--rdzv-endpoint", "localhost", *worker, says="--master-port")
        self.refused("--rdzv-endpoint", "localhost:99999", *worker, says="99999")
        self.assert_code(self.muster("--rdzv-endpoint", "[::1]:29678", *worker), 0)
        self.assertEqual(self.env_of()["MASTER_ADDR"], "::1")
        self.assertEqual(self.env_of()["MASTER_PORT"], "29678")

    @row(
        14,
        "--no-python --module -> exit 1; a missing or not executable program, one in the current "
        "folder without a path -> exit 1 with an OS error",
        "different: 2 for the contradiction, 127 and 126 as a shell has them",
    )
    def test_programs_that_cannot_start(self):
        self.refused("--no-python", "--module", "x")
        run = self.muster("--no-python", "/nonexistent")
        self.assert_code(run, 127)
        self.assertIn("/nonexistent", run.err)
        plain = self.words("plain.sh")
        os.chmod(plain, 0o644)
        run = self.muster("--no-python", plain)
        self.assert_code(run, 126)
        self.assertIn(plain, run.err)
        self.words()
        run = self.muster("--no-python", "w.sh")
        self.assert_code(run, 127)
        self.assertIn("PATH", run.err)
        self.assertEqual(self.started(), [])

    @row(
        15,
        "a Python script that does not exist -> summary with exitcode 2, exit 1",
        "different: the worker's own code is the exit code",
    )
    def test_missing_script(self):
        run = self.muster("missing.py")
        self.assert_code(run, 2)
        self.assertIn("missing.py", run.err)
        self.assertIn("rank 0", run.err)

    @row(
        16,
        "--print-completion bash without shtab -> a line naming it, exit 1; fish or no value -> 2",
        "different: completion is built in, for fish too",
    )
    def test_completion(self):
        for shell in ("bash", "zsh", "tcsh", "fish"):
            run = self.muster("--print-completion", shell)
            self.assert_code(run, 0)
            self.assertIn("nproc-per-node", run.out)
        self.refused("--print-completion", "foo", says="foo")
        self.refused("--print-completion")

    @row(
        17,
        "--event-log-handler foo, --logs-specs foo -> exit 1; --logs-specs default works",
        "different: exit 2",
    )
    def test_plugins(self):
        self.refused("--event-log-handler", "foo", "--no-python", self.words(), says="foo")
        self.refused("--logs-specs", "foo", "--no-python", self.words(), says="foo")
        self.assert_code(self.muster("--logs-specs", "default", "--no-python", self.words()), 0)

    @row(18, 'tr "" -> exit 1, an index error', "different: a usage error, exit 2")
    def test_empty_script(self):
        self.refused("")

    @row(
        19,
        "python -m torch.distributed.launch s.py z -> argv --local-rank=0 z; --use-env -> z",
        "different: the deprecated module is not replaced; --use-env is refused with a reason",
    )
    def test_launch_module(self):
        self.refused("--use-env", self.words(), says="--use-env")


if __name__ == "__main__":
    harness.main()
