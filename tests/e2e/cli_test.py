# SPDX-License-Identifier: Apache-2.0
"""muster's own command line, beyond torchrun's: programs, plans, completion, the binary."""

import os
import shutil
import subprocess
import sys

import harness
from conformance import ConformanceTest


class CommandLine(ConformanceTest):
    def test_run_may_be_said(self):
        self.assert_code(self.muster("run", "--no-python", self.words(), "run"), 0)
        self.assertEqual(self.args_of(), ["run"])

    def test_linked_as_torchrun_it_behaves_the_same(self):
        os.symlink(harness.MUSTER, self.path("torchrun"))
        words = ("--nproc_per_node=2", "--no-python", self.dump())
        self.assert_code(self.start(*words, command=[self.path("torchrun")]).wait(), 0)
        self.assertEqual(self.env_of(1)["WORLD_SIZE"], "2")

    def test_python_scripts_go_through_python(self):
        text = "import os, sys; print(sys.executable, int(sys.stdout.write_through), sys.argv[1:])"
        script = self.script(text, "s.py")
        os.chmod(script, 0o644)
        run = self.muster(script, "a")
        self.assertEqual(run.out, f"{sys.executable} 1 ['a']\n")
        os.makedirs(self.path("bin"))
        os.symlink(sys.executable, self.path("bin", "python3"))
        path = self.path("bin") + ":" + os.environ["PATH"]
        run = self.muster(script, env={"PYTHON_EXEC": None, "PATH": path})
        self.assertIn(self.path("bin", "python3"), run.out)

    def test_modules_are_run(self):
        self.script("print('from a module', __name__)", "part.py")
        run = self.muster("-m", "part")
        self.assertEqual(run.out, "from a module __main__\n")

    def test_programs_run_without_the_flag(self):
        run = self.muster(self.script('echo "a shell script"'))
        self.assertEqual(run.out, "a shell script\n")
        run = self.muster(shutil.which("echo"), "an ELF file")
        self.assertEqual(run.out, "an ELF file\n")

    def test_an_option_that_does_nothing_is_named(self):
        run = self.muster("--node-rank", "0", "--standalone", "--master-port", "1234", self.words())
        self.assert_code(run, 0)
        warnings = [line for line in run.err.splitlines() if "--master-port" in line]
        self.assertEqual(len(warnings), 1, run.err)

    def test_a_misspelt_option_gets_a_suggestion(self):
        self.refused("--nproc-per-nod3", "2", self.words(), says="--nproc-per-node")
        self.refused("--max-restart=1", "--bogus", self.words(), says="--bogus")

    def test_the_plan_is_printed_and_nothing_runs(self):
        words = ("--nproc-per-node", "2", "-t", "3", "--log-dir", self.path("L"))
        run = self.muster("--dry-run", *words, "--no-python", self.dump(), "an argument")
        self.assert_code(run, 0)
        self.assertEqual(self.started(), [])
        self.assertFalse(os.path.exists(self.path("L")))
        for expected in ("env.sh", "an argument", "RANK=1", "LOCAL_RANK=1", "WORLD_SIZE=2"):
            self.assertIn(expected, run.out)

    def test_completion_scripts_are_valid(self):
        for shell, check in (
            ("bash", "-n"),
            ("zsh", "-n"),
            ("tcsh", "-n"),
            ("fish", "--no-execute"),
        ):
            if not shutil.which(shell):
                continue
            with self.subTest(shell=shell):
                run = self.muster("--print-completion", shell)
                done = subprocess.run([shell, check, run.out_path], capture_output=True)
                self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_bash_completes_an_option(self):
        run = self.muster("--print-completion", "bash")
        with open(self.path("c.sh"), "w") as file:
            file.write(run.out)
            file.write(
                """
                COMP_WORDS=(muster --nproc) COMP_CWORD=1 COMP_LINE='muster --nproc' COMP_POINT=14
                function=$(complete -p muster | sed 's/.*-F \\([^ ]*\\).*/\\1/')
                $function muster --nproc muster
                echo "${COMPREPLY[@]}"
                """
            )
        done = subprocess.run(["bash", self.path("c.sh")], capture_output=True, text=True)
        self.assertIn("--nproc-per-node", done.stdout, done.stderr)

    def test_help_groups_the_options(self):
        lines = self.muster("--help").out.splitlines()
        self.assertLessEqual(max(map(len, lines)), 100)
        headings = [line for line in lines if line and not line.startswith(" ")]
        self.assertGreaterEqual(len(headings), 4)

    def test_the_number_of_workers_is_explained(self):
        run = self.muster("--nproc-per-node", "auto", self.words())
        self.assertRegex(run.err, "(?i)cpu")

    def test_the_token_is_for_muster_alone(self):
        token = "the-token-of-this-job"
        env = {"MUSTER_TOKEN": token}
        logs = self.path("logs")
        # What a worker gets, and what it can look up of its parent and that one's parent.
        look = """
            env >"$T/env.$RANK"
            front=$(awk '{ print $4 }' /proc/$PPID/stat)
            for pid in $PPID $front; do
              tr '\\0' '\\n' </proc/$pid/cmdline
              tr '\\0' '\\n' </proc/$pid/environ
            done >"$T/args.0"
        """
        script = self.script(look)
        words = ("--log-dir", logs, "--event-log-handler", "console", "--no-python", script)
        run = self.muster(*words, env=env)
        self.assert_code(run, 0)
        self.assertNotIn("MUSTER_TOKEN", self.env_of())
        several = ("--nnodes", "2", "--master-addr", "node-b")
        shown = self.muster("--dry-run", *several, *words, env=env)
        self.assertIn("with a token", shown.out)
        self.assertEqual(self.file("args.0").count("\nMUSTER_TOKEN=---"), 2)
        texts = [run.out, run.err, shown.out, shown.err, self.file("args.0"), self.file("env.0")]
        for folder, _, names in os.walk(logs):
            texts += [harness.read(os.path.join(folder, name)).decode("latin-1") for name in names]
        self.assertGreater(len(texts), 8)
        self.assertEqual([text for text in texts if token in text], [])

    def test_several_nodes_are_checked_before_anything_starts(self):
        for words, says in (
            (("--nnodes", "2", "--rdzv-backend", "c10d"), "--rdzv-endpoint"),
            (("--nnodes", "2", "--node-rank", "2"), "--node-rank 2"),
            (("--nnodes", "2", "--rdzv-endpoint", "a:0"), "port 0"),
            (("--nnodes", "2", "--rdzv-endpoint", "fe80::1%eth0:1"), "brackets"),
            (("--nnodes", "2", "--master-addr", "10.0.0.300"), "10.0.0.300"),
            (("--nnodes", "2", "--rdzv-id", ""), "run id"),
            (("--nnodes", "2", "--token-file", self.path("none")), "none"),
            (("--standalone", "--nnodes", "3"), "--standalone"),
        ):
            with self.subTest(words=words):
                self.refused(*words, "--no-python", self.words(), says=says)

    def test_the_binary_is_one_file(self):
        if "/release/" not in harness.MUSTER:
            return  # the others need the sanitizers' libraries
        out = subprocess.run(["ldd", harness.MUSTER], capture_output=True, text=True).stdout
        names = [line.split()[0] for line in out.splitlines()]
        extra = [
            name for name in names if not name.startswith(("linux-vdso", "libc.", "libm.", "/"))
        ]
        self.assertEqual(extra, [])


if __name__ == "__main__":
    harness.main()
