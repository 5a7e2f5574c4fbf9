// SPDX-License-Identifier: Apache-2.0
#include "supervisor/commands/find_run.h"

#include <doctest/doctest.h>

#include "status/run_on_disk.h"

namespace muster {

namespace {

struct RunsTest {
  TestFolder base;
  std::vector<UniqueFd> locks;

  std::string add(const std::string& name, int64_t started, bool live = false) {
    base.write(name + "/events.jsonl", "");
    const std::string lock = base.write(name + "/" + kRunLockFile, "");
    RunOnDisk::set_time(lock, started);
    if (live) {
      locks.emplace_back(open(lock.c_str(), O_WRONLY | O_CLOEXEC));
      REQUIRE(flock(locks.back().get(), LOCK_EX) == 0);
    }
    return base.file(name);
  }

  std::string found(const std::string& what) {
    Result<std::string> run = find_run(what, {base.path()});
    return run ? *run : "error: " + run.error().message;
  }
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE_FIXTURE(RunsTest, "without a word it is the newest run that lives") {
  add("a_aaaaaaaa", 300);
  const std::string older = add("b_bbbbbbbb", 100, true);
  const std::string newer = add("c_cccccccc", 200, true);
  add("d_dddddddd", 400);
  CHECK(found("") == newer);
  CHECK(older != newer);
}

TEST_CASE_FIXTURE(RunsTest, "if none lives it is the newest of all") {
  add("a_aaaaaaaa", 100);
  const std::string newest = add("b_bbbbbbbb", 300);
  add("c_cccccccc", 200);
  CHECK(found("") == newest);
}

TEST_CASE_FIXTURE(RunsTest, "where there is none the error says where was looked") {
  CHECK(has(found(""), "there is no run in " + base.path()));
  CHECK(has(found(""), "--log-dir"));
  CHECK(has(found("x"), "there is no run 'x'"));
}

TEST_CASE_FIXTURE(RunsTest, "a run is named by the beginning of its id or its folder") {
  const std::string job = add("4f1c9d_aaaaaaaa", 100);
  add("5a0000_bbbbbbbb", 200);
  CHECK(found("4f1") == job);
  CHECK(found("4f1c9d") == job);
  CHECK(found("4f1c9d_aaaaaaaa") == job);
}

TEST_CASE_FIXTURE(RunsTest, "of several runs of one id the newest is meant") {
  add("train_aaaaaaaa", 100);
  const std::string newest = add("train_bbbbbbbb", 200);
  add("train2_cccccccc", 300);
  CHECK(found("train") == newest);
  CHECK(found("train_") == newest);
  CHECK(found("train_a") == base.file("train_aaaaaaaa"));
}

TEST_CASE_FIXTURE(RunsTest, "the beginning of several ids is refused with a list") {
  for (int i = 0; i < 7; ++i)
    add("job" + std::to_string(i) + "_aaaaaaaa", i, i == 2);
  const std::string error = found("job");
  CHECK(has(error, "'job' is the beginning of several runs:\n  job2_aaaaaaaa  (live)\n"));
  CHECK(has(error, "and 2 more"));
}

TEST_CASE_FIXTURE(RunsTest, "a folder is a run, or a folder of runs") {
  const std::string run = add("a_aaaaaaaa", 100);
  Result<std::string> by_path = find_run(run, {});
  REQUIRE(by_path);
  CHECK(*by_path == run);
  Result<std::string> newest = find_run(base.path(), {});
  REQUIRE(newest);
  CHECK(*newest == run);
}

TEST_CASE_FIXTURE(RunsTest, "other folders, files and paths that do not exist are told apart") {
  base.write("plain/x", "");
  base.write("file", "");
  CHECK(has(found(base.file("plain")), "is not a run's folder and has none in it"));
  CHECK(has(found(base.file("file")), "is a file: name the run's folder"));
  CHECK(has(found(base.file("gone")), "gone: No such file"));
}

TEST_CASE_FIXTURE(RunsTest, "the link to the latest run is not a second run") {
  const std::string run = add("a_aaaaaaaa", 100);
  std::filesystem::create_directory_symlink("a_aaaaaaaa", base.file("latest"));
  CHECK(found("") == run);
  CHECK(found("a") == run);
  CHECK(find_run(base.file("latest"), {}));
}

}  // namespace muster
