// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/program.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/plan_fixture.h"
#include "skip.h"

namespace muster {
namespace {

// Runs in the tree's root, since scripts are found from the current directory.
struct ProgramFixture : PlanFixture {
  std::string before = std::filesystem::current_path();
  ProgramFixture() { std::filesystem::current_path(tree.root()); }
  ~ProgramFixture() { std::filesystem::current_path(before); }

  Strings argv(const Strings& words) const { return plan(words).workers[0].argv; }
  std::string executable(const Strings& words) const { return plan(words).workers[0].executable; }
};

}  // namespace

TEST_SUITE_BEGIN("program");

TEST_CASE_FIXTURE(ProgramFixture, "a Python script runs unbuffered, whether it exists or not") {
  CHECK(argv({"missing.py", "-a"}) == Strings{python, "-u", "missing.py", "-a"});
  CHECK(executable({"missing.py"}) == python);
  CHECK(argv({"-m", "pkg.mod", "-a"}) == Strings{python, "-u", "-m", "pkg.mod", "-a"});
  CHECK(plan({"missing.py"}).program_name == "missing.py");
  tree.program("exec.py", "#!/bin/sh\n");
  CHECK(executable({"exec.py"}) == python);
}

TEST_CASE_FIXTURE(ProgramFixture, "PYTHON_EXEC chooses the interpreter") {
  std::string other = tree.program("bin/python9",
                                   "\x7f"
                                   "ELF");
  environment.emplace_back("PYTHON_EXEC=python9");
  CHECK(executable({"x.py"}) == other);
  CHECK(argv({"x.py"})[0] == "python9");
  environment.back() = "PYTHON_EXEC=" + other;
  CHECK(executable({"x.py"}) == other);
  environment.back() = "PYTHON_EXEC=nope";
  Error missing = error({"x.py"});
  CHECK(missing.code == 127);
  CHECK(has(missing.message, "PYTHON_EXEC=nope: program not found on node-a"));
  environment.back() = "PYTHON_EXEC=";
  CHECK(executable({"x.py"}) == python);
}

TEST_CASE_FIXTURE(ProgramFixture, "no Python at all says what was searched and what to do") {
  environment[0] = "PATH=/nowhere:/neither";
  Error missing = error({"x.py"});
  CHECK(missing.code == 127);
  CHECK(has(missing.message, "/nowhere:/neither"));
  CHECK(has(missing.message, "set PYTHON_EXEC"));
}

TEST_CASE_FIXTURE(ProgramFixture, "--no-python takes the program by PATH's rules") {
  tree.program("w.sh", "#!/bin/sh\n");
  tree.program("bin/tool", "#!/bin/sh\n");
  CHECK(argv({"--no-python", "./w.sh", "a"}) == Strings{"./w.sh", "a"});
  CHECK(executable({"--no-python", "tool"}) == tree.path("bin/tool"));
  CHECK(argv({"--no-python", "tool"}) == Strings{"tool"});
  Error missing = error({"--no-python", "w.sh"});
  CHECK(missing.code == 127);
  CHECK(has(missing.message, "w.sh: program not found on node-a"));
  CHECK(has(missing.message, "searched PATH " + tree.path("bin")));
  CHECK(has(missing.message, "there is one in the current directory: ./w.sh"));
  CHECK(error({"--no-python", "/nonexistent"}).code == 127);
}

TEST_CASE_FIXTURE(ProgramFixture, "what is there but cannot be executed ends with 126") {
  tree.file("plain.sh", "#!/bin/sh\n");
  tree.file("bin/plain", "x");
  Error denied = error({"--no-python", "./plain.sh"});
  CHECK(denied.code == 126);
  CHECK(has(denied.message, "./plain.sh: is not executable"));
  CHECK(error({"--no-python", "plain"}).code == 126);
  CHECK(has(error({"--no-python", "./bin"}).message, "is a directory"));
  // Without the flag Python would call a shell script a syntax error.
  CHECK(error({"plain.sh"}).code == 126);
  tree.file("elf",
            "\x7f"
            "ELF");
  CHECK(error({"./elf"}).code == 126);
}

TEST_CASE_FIXTURE(ProgramFixture, "executables that are not .py need no flag") {
  tree.program("w.sh", "#!/bin/sh\n");
  tree.program("solver",
               "\x7f"
               "ELF");
  tree.program("bin/tool",
               "\x7f"
               "ELF");
  CHECK(executable({"w.sh"}) == "./w.sh");
  CHECK(argv({"w.sh", "a"}) == Strings{"w.sh", "a"});
  CHECK(executable({"./solver"}) == "./solver");
  CHECK(executable({"tool"}) == tree.path("bin/tool"));
  CHECK(plan({"w.sh"}).program_name == "w.sh");
  tree.file("script", "print(1)\n");
  CHECK(executable({"script"}) == python);
  tree.file("script2", "#!/usr/bin/env python3\n");
  CHECK(executable({"script2"}) == python);
  CHECK(executable({"-m", "solver"}) == python);
}

TEST_CASE_FIXTURE(ProgramFixture, "a script whose interpreter is missing is missing itself") {
  tree.program("w.sh", "#! /no/such/shell -e\n");
  Error missing = error({"w.sh"});
  CHECK(missing.code == 127);
  CHECK(has(missing.message, "its interpreter /no/such/shell is not there"));
}

TEST_CASE_FIXTURE(ProgramFixture, "--run-path hands script and arguments to runpy") {
  Strings words = argv({"--run-path", "x.py", "-a", "b"});
  REQUIRE(words.size() == 7);
  CHECK(words[1] == "-u");
  CHECK(words[2] == "-c");
  CHECK(words[4] == "x.py");
  CHECK(words[6] == "b");
  CHECK(plan({"--run-path", "x.py"}).program_name == "run_script_path");
}

TEST_CASE_FIXTURE(ProgramFixture, "runpy sees the script as __main__ with its own argv") {
  environment = current_environment();
  if (system("python3 -c '' 2>/dev/null") != 0) {
    say_skipped("no python3");
    return;
  }
  tree.file("x.py", "import sys\nopen('out', 'w').write(__name__ + repr(sys.argv))\n");
  Strings words = argv({"--run-path", "x.py", "-a", "b c"});
  std::vector<char*> raw;
  for (std::string& word : words)
    raw.push_back(word.data());
  raw.push_back(nullptr);
  std::string program = executable({"--run-path", "x.py"});
  pid_t pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    execv(program.c_str(), raw.data());
    _exit(99);
  }
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  CHECK(status == 0);
  CHECK(read_line("out") == "__main__['x.py', '-a', 'b c']");
}

TEST_CASE("only the local rank is substituted, and $$ stays as it is") {
  CHECK(substitute_local_rank("a$$b ${local_rank} $x", 3) == "a$$b 3 $x");
  CHECK(substitute_local_rank("$local_rank,$local_rank", 12) == "12,12");
  CHECK(substitute_local_rank("$local_rank_x $local_ranks", 1) == "$local_rank_x $local_ranks");
  CHECK(substitute_local_rank("$$local_rank $${local_rank}", 1) == "$$local_rank $${local_rank}");
  CHECK(substitute_local_rank("${local_rank $ $", 1) == "${local_rank $ $");
}

TEST_CASE_FIXTURE(ProgramFixture, "arguments are substituted for each worker, the program is not") {
  tree.program("w$local_rank", "#!/bin/sh\n");
  LaunchPlan made =
      plan({"--nproc-per-node", "2", "--no-python", "./w$local_rank", "-r", "${local_rank}"});
  CHECK(made.workers[1].argv == Strings{"./w$local_rank", "-r", "1"});
  CHECK(made.workers[0].argv == Strings{"./w$local_rank", "-r", "0"});
}

TEST_SUITE_END();

}  // namespace muster
