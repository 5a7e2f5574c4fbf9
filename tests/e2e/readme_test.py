# SPDX-License-Identifier: Apache-2.0
"""Every command of the README and of the page on training, run as it is written there."""

import os
import re
import subprocess

import harness
from harness import MusterTest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def blocks(name, kind="sh"):
    with open(os.path.join(TOP, name)) as file:
        return re.findall(rf"^```{kind}\n(.*?)^```$", file.read(), re.M | re.S)


class Readme(MusterTest):
    def test_every_command_works(self):
        commands = blocks("README.md")
        self.assertGreaterEqual(len(commands), 3)
        environment = self.environment()
        del environment["PYTHON_EXEC"]
        for block in commands:
            with self.subTest(block=block):
                terminals = 2 if block.startswith("# In each of two terminals\n") else 1
                runs = [self.start_block(block, environment) for _ in range(terminals)]
                for run in runs:
                    out, _ = run.communicate()
                    self.assertEqual(run.returncode, 0, out)
                self.bury_what_the_build_left()
        self.assertEqual(sum("two terminals" in block for block in commands), 1)

    def test_every_command_of_the_page_on_training_works(self):
        (block,) = blocks("docs/training.md")
        run = self.start_block(block, self.environment())
        out, _ = run.communicate()
        self.assertEqual(run.returncode, 0, out)
        self.assertGreaterEqual(out.count("epoch 2 "), 4)
        self.assertIn("resuming at step 30", out)
        self.assertIn("average bus bandwidth", out)
        self.bury_what_the_build_left()

    def bury_what_the_build_left(self):
        """The page's bundler ends its own processes without waiting for them."""
        named = lambda pid: harness.read_proc(pid, "comm").strip() == b"esbuild"
        for pid in [pid for pid in harness.children(os.getpid()) if named(pid)]:
            os.waitpid(pid, 0)

    def start_block(self, block, environment):
        return subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", block],
            cwd=TOP,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def test_every_link_leads_somewhere(self):
        with open(os.path.join(TOP, "README.md")) as file:
            links = re.findall(r"\]\(\s*([^):]+)\)", file.read())
        self.assertGreater(len(links), 3)
        for link in links:
            self.assertTrue(os.path.exists(os.path.join(TOP, link)), link)

    def test_every_path_named_exists(self):
        with open(os.path.join(TOP, "README.md")) as file:
            paths = re.findall(r"`((?:src|docs|tests|examples|scripts|bench)/[^` ]*)`", file.read())
        self.assertGreater(len(paths), 8)
        for path in paths:
            self.assertTrue(os.path.exists(os.path.join(TOP, path)), path)


if __name__ == "__main__":
    harness.main()
