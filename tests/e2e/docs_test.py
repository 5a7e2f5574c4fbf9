# SPDX-License-Identifier: Apache-2.0
"""The worker library's pages: their C++ compiles, and the reference is what the headers say."""

import os
import re
import subprocess
import sys
import unittest
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader

from readme_test import TOP, blocks

SCRIPT = os.path.join(TOP, "scripts", "api-reference")
COMPILER = os.environ.get("CXX", "c++")
PAGES = ("README.md", "docs/worker-library.md")

# What the parts of a program on the pages stand in.
AROUND = """
#include <muster/comm.h>
#include <muster/train.h>
#include <cstdio>
#include <vector>
namespace mc = muster::comm;
namespace mt = muster::train;
void use(int64_t index);
"""


PART = """
void part_%d(mc::World& world, mc::Communicator& all, mc::Communicator& second, mc::Stream stream,
             std::vector<float>& gradients, void* device_memory, const std::string& path) {
#line 1 "%s: piece %d"
%s
}
"""


def parts(pieces):
    """One program of all of them: it is the headers that take the compiler's time."""
    text = [PART % (n, page, n, piece) for n, (page, piece) in enumerate(pieces)]
    return AROUND + "".join(text)


def compile_error(program):
    """What the compiler says of it, "" if nothing."""
    command = [COMPILER, "-std=c++20", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"]
    command += ["-Wno-unused-variable", "-fsyntax-only", "-x", "c++", "-"]
    command += ["-I", os.path.join(TOP, "src", "nccl", "include")]
    done = subprocess.run(command, input=program, capture_output=True, text=True)
    return done.stderr if done.returncode != 0 else ""


class Docs(unittest.TestCase):
    def test_every_piece_of_cpp_compiles(self):
        pieces = [(page, piece) for page in PAGES for piece in blocks(page, "cpp")]
        self.assertGreater(len(pieces), 8)
        programs = [piece for _, piece in pieces if "int main" in piece]
        programs.append(parts([pair for pair in pieces if "int main" not in pair[1]]))
        for program in programs:
            self.assertEqual(compile_error(program), "")

    def test_a_piece_that_is_wrong_does_not_compile(self):
        error = compile_error(parts([("page", "all.all_reduse(gradients);")]))
        self.assertIn("page: piece 0:1", error)

    def test_the_reference_says_what_the_headers_say(self):
        done = subprocess.run([sys.executable, "-B", SCRIPT, "--check"], capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr.decode())

    def test_what_has_no_comment_is_found(self):
        loader = SourceFileLoader("api_reference", SCRIPT)
        script = module_from_spec(spec_from_loader("api_reference", loader))
        loader.exec_module(script)
        code = ["// A thing.", "class Thing {", " public:", "  // It does.", "  void does();", ""]
        code += ["  void does_not();", " private:", "  void hidden();", "};", "", "int bare();"]
        found = list(script.uncommented("h", script.declarations(code, 1)))
        self.assertEqual(found, ["h:7: Thing::does_not", "h:12: bare"])

    def test_every_link_leads_somewhere(self):
        for page in ("docs/worker-library.md", "docs/worker-library-reference.md"):
            with open(os.path.join(TOP, page)) as file:
                links = re.findall(r"\]\(([^):]+)\)", file.read())
            self.assertTrue(links, page)
            for link in links:
                name, _, anchor = link.partition("#")
                path = os.path.join(TOP, "docs", name)
                self.assertTrue(os.path.exists(path), link)
                if anchor:
                    with open(path) as file:
                        headings = re.findall(r"^#+ (.*)$", file.read(), re.M)
                    self.assertIn(anchor, [h.lower().replace(" ", "-") for h in headings], link)


if __name__ == "__main__":
    unittest.main(verbosity=2)
