// SPDX-License-Identifier: Apache-2.0
#include "supervisor/logs/retention.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <filesystem>
#include <optional>

#include "logs/temp_dir.h"
#include "loop/unique_fd.h"
#include "supervisor/logs/run_folder.h"

namespace muster {

namespace fs = std::filesystem;

namespace {

// Makes a finished run that started at `seconds`.
void make_run(const std::string& base, const std::string& name, int seconds) {
  fs::create_directories(base + "/" + name + "/attempt_0/0");
  std::string lock = base + "/" + name + "/" + kRunLockFile;
  write_file(lock, "");
  struct timespec times[2] = {{seconds, 0}, {seconds, 0}};
  REQUIRE(utimensat(AT_FDCWD, lock.c_str(), times, 0) == 0);
}

struct Variable {
  std::string name;
  std::optional<std::string> before;
  Variable(const char* variable, const std::string& value) : name(variable) {
    if (const char* old = getenv(variable)) before = old;
    setenv(variable, value.c_str(), 1);
  }
  ~Variable() {
    if (before) {
      setenv(name.c_str(), before->c_str(), 1);
    } else {
      unsetenv(name.c_str());
    }
  }
};

}  // namespace

TEST_CASE("the oldest runs go first and live ones never") {
  std::vector<RunEntry> runs = {{"d", 4, false}, {"a", 1, false}, {"b", 2, true}, {"c", 3, false}};
  CHECK(runs_to_remove(runs, 2) == std::vector<std::string>{"a"});
  CHECK(runs_to_remove(runs, 0) == std::vector<std::string>{"a", "c", "d"});
  CHECK(runs_to_remove(runs, 4).empty());
}

TEST_CASE("pruning removes old runs and nothing that is live or not ours") {
  TempDir dir;
  for (int i = 0; i < 5; ++i)
    make_run(dir.path, "run" + std::to_string(i), 1000 + i);
  fs::create_directory(dir.path + "/precious");
  UniqueFd live(open((dir.path + "/run0/" + kRunLockFile).c_str(), O_RDONLY | O_CLOEXEC));
  REQUIRE(flock(live.get(), LOCK_EX | LOCK_NB) == 0);
  prune_runs(dir.path, 2);
  CHECK(fs::exists(dir.path + "/run0"));
  CHECK_FALSE(fs::exists(dir.path + "/run1"));
  CHECK_FALSE(fs::exists(dir.path + "/run2"));
  CHECK(fs::exists(dir.path + "/run3"));
  CHECK(fs::exists(dir.path + "/run4"));
  CHECK(fs::exists(dir.path + "/precious"));
}

TEST_CASE("latest is replaced whatever was there before") {
  TempDir dir;
  point_latest(dir.path, "one");
  point_latest(dir.path, "two");
  CHECK(fs::read_symlink(dir.path + "/latest") == "two");
}

TEST_CASE("a run's folder is private, locked and named after the run") {
  TempDir dir;
  auto folder = make_run_folder(dir.path + "/a/b", "x/y");
  REQUIRE(folder.has_value());
  CHECK(folder->path.find(dir.path + "/a/b/x_y_") == 0);
  CHECK(folder->name.size() == std::string("x_y_").size() + 8);
  struct stat info;
  REQUIRE(stat(folder->path.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0700);
  prune_runs(folder->base, 0);
  CHECK(fs::exists(folder->path));
  folder->lock.reset();
  prune_runs(folder->base, 0);
  CHECK_FALSE(fs::exists(folder->path));
}

TEST_CASE("a log folder that is a file is an error that names it") {
  TempDir dir;
  write_file(dir.path + "/file", "");
  auto folder = make_run_folder(dir.path + "/file", "r");
  REQUIRE_FALSE(folder.has_value());
  CHECK(folder.error().message.find("/file") != std::string::npos);
}

TEST_CASE("the null device means no files") {
  auto folder = make_run_folder("/dev/null", "r");
  REQUIRE(folder.has_value());
  CHECK(folder->path.empty());
}

TEST_CASE("the default folder falls back to the temporary one") {
  TempDir dir;
  Variable state("XDG_STATE_HOME", "/proc/nowhere");
  Variable temporary("TMPDIR", dir.path);
  auto folder = make_run_folder("", "r");
  REQUIRE(folder.has_value());
  CHECK(folder->in_default_base);
  CHECK(folder->base == dir.path + "/muster-" + std::to_string(geteuid()));
}

}  // namespace muster
