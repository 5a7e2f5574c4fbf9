// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/traceback.h"

#include <doctest/doctest.h>

#include "diagnosis/run_program.h"
#include "supervisor/diagnosis/text_lines.h"

namespace muster {

namespace {

std::optional<Traceback> in_text(std::string_view text) {
  return find_traceback(clean_lines(text));
}

// What a script that a real Python runs leaves on stderr.
std::optional<Traceback> of_script(std::string_view code) {
  TestFolder folder;
  Evidence evidence = run_python(folder.write("train.py", code));
  CAPTURE(evidence.stderr_tail);
  CHECK(evidence.wait_status != 0);
  return in_text(evidence.stderr_tail);
}

}  // namespace

TEST_CASE("an uncaught exception gives its type, message and place") {
  auto found = of_script(
      "def step():\n"
      "    raise ValueError('bad shape')\n"
      "step()\n");
  REQUIRE(found);
  CHECK(found->type == "ValueError");
  CHECK(found->message == "bad shape");
  CHECK(found->summary() == "ValueError: bad shape (train.py:2)");
  CHECK(found->lines.front() == "Traceback (most recent call last):");
  CHECK(found->lines.back() == "ValueError: bad shape");
  CHECK(found->lines_before == 0);
  CHECK(found->lines_after == 0);
}

TEST_CASE("the lines of a long message are kept, what a destructor says later is not") {
  auto found = of_script(
      "class Noisy:\n"
      "    def __del__(self):\n"
      "        raise OSError('late')\n"
      "noisy = Noisy()\n"
      "raise RuntimeError('Error(s) in loading state_dict:\\n\\tMissing key: a\\n\\nlast line')\n");
  REQUIRE(found);
  CHECK(found->type == "RuntimeError");
  REQUIRE(found->lines.size() > 4);
  CHECK(found->lines[found->lines.size() - 4] == "RuntimeError: Error(s) in loading state_dict:");
  CHECK(found->lines.back() == "last line");
}

TEST_CASE("an exception inside a library points at the user's own line") {
  auto found = of_script("import json\n\njson.loads('{')\n");
  REQUIRE(found);
  CHECK(found->type == "json.decoder.JSONDecodeError");
  CHECK(found->summary().ends_with("(train.py:3)"));
}

TEST_CASE("a chain is taken whole, its end is the exception and its beginning the cause") {
  auto found = of_script(
      "try:\n"
      "    try:\n"
      "        {}['x']\n"
      "    except KeyError as e:\n"
      "        raise RuntimeError('load failed') from e\n"
      "except RuntimeError:\n"
      "    raise OSError('gave up')\n");
  REQUIRE(found);
  CHECK(found->summary() == "OSError: gave up (train.py:7)");
  CHECK(found->cause == "KeyError: 'x'");
  CHECK(found->lines.front() == "Traceback (most recent call last):");
  int headers = 0;
  for (const std::string& line : found->lines)
    headers += line.starts_with("Traceback") ? 1 : 0;
  CHECK(headers == 3);
}

TEST_CASE("an exception group names its first leaf") {
  auto found = of_script(
      "def fail(e):\n"
      "    try:\n"
      "        raise e\n"
      "    except Exception as x:\n"
      "        return x\n"
      "raise ExceptionGroup('two', [ExceptionGroup('in', [fail(TypeError('deep'))]),\n"
      "                             ValueError('flat')])\n");
  REQUIRE(found);
  CHECK(found->type == "ExceptionGroup");
  CHECK(found->message == "two (2 sub-exceptions): TypeError: deep");
  CHECK(found->lines.back().ends_with("+------------------------------------"));
}

TEST_CASE("a syntax error of the script has no header and is found") {
  auto found = of_script("def f(:\n    pass\n");
  REQUIRE(found);
  CHECK(found->type == "SyntaxError");
  CHECK(found->summary().ends_with("(train.py:1)"));
  CHECK(found->lines_before == 0);
  auto indentation = of_script("x = 1\n  y = 2\n");
  REQUIRE(indentation);
  CHECK(indentation->type == "IndentationError");
}

TEST_CASE("a traceback in the middle of other output is found") {
  auto found = in_text(
      "loading\nTraceback (most recent call last):\n  File \"a.py\", line 7, in <module>\n"
      "    main()\nValueError: x\n[W socket.cpp] some noise\nmore noise\n");
  REQUIRE(found);
  CHECK(found->summary() == "ValueError: x (a.py:7)");
  CHECK(found->lines_before == 1);
  CHECK(found->lines_after == 2);
}

TEST_CASE("of several tracebacks the last one counts") {
  auto found = of_script(
      "import traceback\n"
      "try:\n"
      "    1 / 0\n"
      "except ZeroDivisionError:\n"
      "    traceback.print_exc()\n"
      "raise KeyError('last')\n");
  REQUIRE(found);
  CHECK(found->summary() == "KeyError: 'last' (train.py:6)");
  CHECK(found->cause.empty());
}

TEST_CASE("a thread's exception is not taken for the end of the process") {
  auto found = of_script(
      "import threading, sys\n"
      "def run():\n"
      "    raise ValueError('in thread')\n"
      "t = threading.Thread(target=run); t.start(); t.join()\n"
      "sys.exit(3)\n");
  REQUIRE(found);
  CHECK(found->type == "ValueError");
  CHECK(found->aside);
  auto both = of_script(
      "import threading\n"
      "t = threading.Thread(target=lambda: 1 / 0); t.start(); t.join()\n"
      "raise OSError('main')\n");
  REQUIRE(both);
  CHECK(both->type == "OSError");
  CHECK_FALSE(both->aside);
}

TEST_CASE("a child process and a destructor are asides too") {
  auto child = of_script(
      "import multiprocessing as m, sys\n"
      "def run(): raise ValueError('child')\n"
      "p = m.get_context('fork').Process(target=run); p.start(); p.join()\n"
      "sys.exit(4)\n");
  REQUIRE(child);
  CHECK(child->aside);
  auto destructor = of_script(
      "import sys\n"
      "class A:\n"
      "    def __del__(self): raise ValueError('late')\n"
      "a = A(); del a\n"
      "sys.exit(4)\n");
  REQUIRE(destructor);
  CHECK(destructor->aside);
}

TEST_CASE("a prefix on every line is understood") {
  auto found = in_text(
      "[rank3]: Traceback (most recent call last):\n"
      "[rank3]:   File \"/home/u/train.py\", line 12, in main\n"
      "[rank3]:     raise E\n"
      "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n");
  REQUIRE(found);
  CHECK(found->type == "torch.OutOfMemoryError");
  CHECK(found->summary() ==
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB (train.py:12)");
}

TEST_CASE("the original traceback inside another one's message is the one that counts") {
  auto found = in_text(
      "Traceback (most recent call last):\n"
      "  File \"train.py\", line 5, in <module>\n"
      "    for batch in loader:\n"
      "ValueError: Caught ValueError in DataLoader worker process 0.\n"
      "Original Traceback (most recent call last):\n"
      "  File \"/usr/lib/python3/dist-packages/torch/utils/data/_utils/worker.py\", line 308, in "
      "x\n"
      "    data = fetcher.fetch(index)\n"
      "  File \"data.py\", line 9, in __getitem__\n"
      "ValueError: row 7 is empty\n\n");
  REQUIRE(found);
  CHECK(found->summary() == "ValueError: row 7 is empty (data.py:9)");
}

TEST_CASE("a message that only announces takes its next line along") {
  auto found = in_text(
      "Traceback (most recent call last):\n  File \"a.py\", line 2, in <module>\n"
      "RuntimeError: Error(s) in loading state_dict for Net:\n\tMissing key(s): \"fc.weight\"\n");
  REQUIRE(found);
  CHECK(found->message == "Error(s) in loading state_dict for Net: Missing key(s): \"fc.weight\"");
}

TEST_CASE("lines of another writer inside a traceback do not hide it") {
  auto found = in_text(
      "Traceback (most recent call last):\n  File \"a.py\", line 2, in <module>\n    f()\n"
      "WARN other thread speaks\n  File \"a.py\", line 9, in f\n    g()\nValueError: x\n");
  REQUIRE(found);
  CHECK(found->summary() == "ValueError: x (a.py:9)");
}

TEST_CASE("output that begins inside a traceback still gives its end") {
  auto found = in_text("    h()\n  File \"a.py\", line 9, in f\n    g()\nValueError: x\n");
  REQUIRE(found);
  CHECK(found->summary() == "ValueError: x (a.py:9)");
}

TEST_CASE("colours of a terminal do not hide a traceback") {
  auto found = in_text(
      "Traceback (most recent call last):\n"
      "  File \x1b[35m\"a.py\"\x1b[0m, line \x1b[35m2\x1b[0m, in \x1b[35m<module>\x1b[0m\n"
      "\x1b[1;35mValueError\x1b[0m: \x1b[35mx\x1b[0m\n");
  REQUIRE(found);
  CHECK(found->summary() == "ValueError: x (a.py:2)");
}

TEST_CASE("what only looks like a traceback is none") {
  CHECK_FALSE(in_text(""));
  CHECK_FALSE(in_text("Traceback (most recent call last):\n"));
  CHECK_FALSE(in_text("Traceback (most recent call last):\n  File \"a.py\", line 2, in f\n"));
  CHECK_FALSE(in_text("plain\noutput: yes\n"));
  // faulthandler
  CHECK_FALSE(
      in_text("Fatal Python error: Segmentation fault\n\n"
              "Current thread 0x00007f (most recent call first):\n"
              "  File \"a.py\", line 2 in f\n  File \"a.py\", line 9 in <module>\n"));
  // logging with stack_info
  CHECK_FALSE(
      in_text("INFO:root:hello\nStack (most recent call last):\n"
              "  File \"a.py\", line 2, in <module>\n    log()\nINFO:root:next\n"));
}

TEST_CASE("an exception that a pool of processes raised again happened in the worker") {
  auto found = of_script(
      "import multiprocessing as m\n"
      "def f(x):\n"
      "    raise KeyError('shard 3')\n"
      "with m.get_context('fork').Pool(1) as pool:\n"
      "    pool.map(f, range(2))\n");
  REQUIRE(found);
  CHECK(found->summary() == "KeyError: 'shard 3' (train.py:3)");
  CHECK(found->cause.empty());
}

TEST_CASE("deep recursion and much output cost little") {
  auto found = of_script("def f(): f()\nf()\n");
  REQUIRE(found);
  CHECK(found->type == "RecursionError");
  std::string much;
  while (much.size() < 64 * 1024)
    much += "  File \"a.py\", line 1, in f\n";
  CHECK_FALSE(in_text(much));
}

}  // namespace muster
