// SPDX-License-Identifier: Apache-2.0
#include "supervisor/stacks/python_stacks.h"

#include <unistd.h>

#include <cstring>

#include "logs/temp_dir.h"
#include "stacks/started_worker.h"
#include "supervisor/stacks/native_stacks.h"
#include "supervisor/stacks/stack_text.h"

using namespace muster;

namespace {

// One entry of the table: 1 in the highest bit, its form, how many instructions it is for.
std::string entry(unsigned form, unsigned instructions, const std::string& rest = "") {
  return static_cast<char>(0x80 | form << 3 | (instructions - 1)) + rest;
}

constexpr char kHangs[] =
    "import threading, time\n"
    "def step():\n"
    "    time.sleep(1000)\n"
    "class Trainer:\n"
    "    def run(self):\n"
    "        step()\n"
    "threading.Thread(target=lambda: time.sleep(1000), daemon=True).start()\n"
    "Trainer().run()\n";

}  // namespace

TEST_CASE("lines are found in the table of locations, in each of its forms") {
  const std::string table = entry(0, 2, std::string(1, '\1')) +        // columns only
                            entry(11, 1, std::string(2, '\1')) +       // a line later
                            entry(13, 3, std::string(1, '\4')) +       // two lines later
                            entry(14, 1, std::string({3, 0, 1, 1})) +  // one line earlier
                            entry(15, 1);
  CHECK(python_line(table, 10, 0) == 10);
  CHECK(python_line(table, 10, 2) == 10);
  CHECK(python_line(table, 10, 4) == 11);
  CHECK(python_line(table, 10, 6) == 13);
  CHECK(python_line(table, 10, 10) == 13);
  CHECK(python_line(table, 10, 12) == 12);
  CHECK(python_line(table, 10, 14) == 10);
  CHECK(python_line(table, 10, 1000) == 10);
  CHECK(python_line("", 7, 0) == 7);
}

TEST_CASE("a table of any bytes has an end") {
  for (int seed = 0; seed < 256; ++seed) {
    std::string table;
    for (int i = 0; i < 64; ++i)
      table += static_cast<char>(seed * 31 + i * i * 7);
    python_line(table, 1, 60);
  }
}

TEST_CASE("each thread's Python calls are seen, with their lines") {
  const char* python = "/usr/bin/python3";
  if (::access(python, X_OK) != 0) return;
  TempDir dir;
  write_file(dir.path + "/train.py", kHangs);
  testing::StartedWorker worker({python, dir.path + "/train.py"});
  RankView view;
  REQUIRE(worker.until([&] {
    view = view_rank(0, worker.pid);
    if (view.processes[0].threads.size() < 2) return false;
    NativeStacks().add(view.processes[0]);
    const std::vector<PythonFrame>& main = view.processes[0].threads[0].python;
    return !main.empty() && main[0].function == "step";
  }));
  const std::vector<PythonFrame>& main = view.processes[0].threads[0].python;
  REQUIRE(main.size() == 3);
  CHECK(main[0].file == dir.path + "/train.py");
  CHECK(main[0].line == 3);
  CHECK(main[1].function == "Trainer.run");
  CHECK(main[1].line == 6);
  CHECK(main[2].function == "<module>");
  CHECK(main[2].line == 8);
  REQUIRE_FALSE(view.processes[0].threads[1].python.empty());
  CHECK(view.processes[0].threads[1].python[0].function == "<lambda>");
  CHECK(activity(view).ends_with(
      "step (train.py:3) < Trainer.run (train.py:6) < <module> (train.py:8)"));
}

TEST_CASE("an interpreter of another version is named") {
  std::string trouble;
  const uint64_t version = 0x03090000;
  const auto stacks = read_python_stacks(
      {1, 2},
      [&](uint64_t, void* out, size_t size) {
        std::memcpy(out, &version, size);
        return true;
      },
      trouble);
  CHECK(stacks.empty());
  CHECK(trouble == "the stacks of Python 3.9 are not known here");
}

TEST_CASE("memory in which everything points to itself comes to an end") {
  std::string trouble;
  const uint64_t version = 0x030b0000;
  int reads = 0;
  const auto stacks = read_python_stacks(
      {4096, 2},
      [&](uint64_t address, void* out, size_t size) {
        ++reads;
        std::memset(out, 0, size);
        const uint64_t value = address == 2 ? version : 4096;
        if (size <= sizeof value) std::memcpy(out, &value, size);
        return true;
      },
      trouble);
  CHECK(stacks.size() <= kMaxPythonThreads);
  CHECK(reads < 10'000'000);
}
