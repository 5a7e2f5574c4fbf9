# SPDX-License-Identifier: Apache-2.0
"""The installed package alone: a project of somebody else's is built from it and trains under it."""

import os
import re
import shutil
import signal
import subprocess
import tempfile

import harness
from api import Api
from harness import MusterTest, wait_until

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROJECT = os.path.join(TOP, "tests", "nccl", "package")
BUILD = os.environ.get("MUSTER_BUILD", "")


def run(*command, **options):
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}"
    return done.stdout


class Package(MusterTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.outside = tempfile.mkdtemp(prefix="muster-package-")
        cls.addClassCleanup(shutil.rmtree, cls.outside)
        first = os.path.join(cls.outside, "first")
        run("cmake", "--install", BUILD, "--prefix", first)
        # An installed tree may be moved.
        cls.prefix = os.path.join(cls.outside, "prefix")
        os.rename(first, cls.prefix)
        cls.project = os.path.join(cls.outside, "project")
        shutil.copytree(PROJECT, cls.project)
        cls.build = os.path.join(cls.outside, "build")
        configure = ["cmake", "-S", cls.project, "-B", cls.build, "-DCMAKE_BUILD_TYPE=Release"]
        configure += ["-DCMAKE_PREFIX_PATH=" + cls.prefix, "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"]
        run(*configure)
        run("cmake", "--build", cls.build, "-j2")

    def installed(self, pattern):
        found = []
        for folder, _, names in os.walk(self.prefix):
            found += [os.path.join(folder, name) for name in names if re.search(pattern, name)]
        self.assertTrue(found, pattern)
        return found

    def program(self, name):
        return os.path.join(self.build, name)

    def start_installed(self, *arguments, **options):
        muster = os.path.join(self.prefix, "bin", "muster")
        return self.start(*arguments, command=[muster], **options)

    def lines(self, log_dir, rank, attempt):
        folder = self.run_folder(log_dir)
        with open(os.path.join(folder, f"attempt_{attempt}", str(rank), "stdout.log")) as file:
            return file.read().splitlines()

    def train(self, name, *words):
        """An undisturbed training; the line of its result."""
        logs = self.path("logs-" + name)
        run = self.start_installed(
            *("--nproc-per-node", "3", "--redirects", "3", "--log-dir", logs, "--no-python"),
            *(self.program("trainer"), self.path(name), *words),
        ).wait(60)
        self.assert_code(run, 0)
        results = {self.lines(logs, rank, 0)[-1] for rank in range(3)}
        self.assertEqual(len(results), 1, results)
        return results.pop()

    def test_nothing_installed_names_where_it_was_built(self):
        for path in self.installed(r"\.(cmake|pc|h)$"):
            with open(path) as file:
                text = file.read()
            for place in (TOP, self.outside):
                self.assertNotIn(place, text, path)
        with open(os.path.join(self.build, "compile_commands.json")) as file:
            self.assertNotIn(TOP, file.read())

    def test_killed_it_resumes_and_its_hang_is_explained(self):
        undisturbed = self.train("undisturbed")
        self.assertRegex(undisturbed, r"^y = 0x\S+ x \+ -0x\S+$")
        logs = self.path("logs")
        job = self.start_installed(
            *("--nproc-per-node", "3", "--max-restarts", "1", "--redirects", "3"),
            *("--log-dir", logs, "--no-python"),
            *(self.program("trainer"), self.path("checkpoint"), "23", "2"),
        )
        api = Api(job)
        hang = wait_until(
            lambda: (found := re.search(r"rank 2 never entered \w+ #\d+", self.status(api)))
            and found.group(0),
            "/status names rank 2",
            60,
        )
        self.assertIn("all_reduce", hang)
        victim = next(row for row in api.json("/api/v1/ranks")["ranks"] if row["rank"] == 2)
        sample = next(row for row in api.json("/api/v1/samples")["samples"] if row["rank"] == 2)
        self.assertEqual(sample["step"], 23)
        os.kill(victim["pid"], signal.SIGKILL)
        job.wait(60)
        self.assert_code(job, 0)
        for rank in range(3):
            lines = self.lines(logs, rank, 1)
            self.assertEqual(lines, ["resumed at step 20", undisturbed])

    def status(self, api):
        return api.get("/status", api.bearer).body.decode()

    def test_on_gpus_it_says_what_is_missing(self):
        program = self.program("trainer_nccl")
        if not os.path.exists(program):
            return  # no CUDA toolkit: the test "cuda: tests" says so
        if os.path.exists("/dev/nvidia0"):
            return  # nothing is missing
        job = self.start_installed(
            "--nproc-per-node", "2", "--no-python", program, self.path("checkpoint")
        ).wait(60)
        self.assert_code(job, 1)
        said = [line for line in job.err.splitlines() if "muster::comm::ErrorException" in line]
        self.assertTrue(said, job.err)
        self.assertRegex(said[0], "(?i)driver")

    def test_it_works_inside_a_shared_library(self):
        job = self.start_installed("--nproc-per-node", "3", "--no-python", self.program("host"))
        self.assert_code(job.wait(60), 0)
        self.assertEqual(job.out.count("the ranks' sum is 3\n"), 3)

    def test_pkg_config_finds_it(self):
        if shutil.which("pkg-config") is None:
            self.skipTest("no pkg-config")
        folder = os.path.dirname(self.installed(r"^muster-train\.pc$")[0])
        environment = {**os.environ, "PKG_CONFIG_PATH": folder}
        flags = run("pkg-config", "--cflags", "--libs", "muster-train", env=environment).split()
        source = os.path.join(self.project, "trainer.cc")
        program = self.path("trainer")
        run("g++", "-std=c++20", source, "-o", program, *flags)
        done = subprocess.run([program, "x"], capture_output=True, text=True, env={"PATH": ""})
        self.assertEqual(done.returncode, 1)
        self.assertIn("WORLD_SIZE is not set", done.stderr)
        version = run("pkg-config", "--modversion", "muster-comm", env=environment)
        self.assertEqual(version.split(".")[:2], ["0", "1"])

    def test_another_minor_version_is_refused(self):
        with open(self.path("CMakeLists.txt"), "w") as file:
            file.write(
                "cmake_minimum_required(VERSION 3.24)\nproject(p LANGUAGES CXX)\n"
                "find_package(muster 0.2 REQUIRED)\n"
            )
        done = subprocess.run(
            ["cmake", "-S", self.dir, "-B", self.path("b"), "-DCMAKE_PREFIX_PATH=" + self.prefix],
            capture_output=True,
            text=True,
        )
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r'compatible\s+with\s+requested\s+version\s+"0.2"')


if __name__ == "__main__":
    harness.main()
