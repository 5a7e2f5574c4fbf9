// SPDX-License-Identifier: Apache-2.0
#include "nccl/cuda/warnings.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

namespace muster::comm::detail {
namespace {

// Variables as a test wants them, and as they were afterwards.
class Environment {
 public:
  Environment() {
    for (const char* name : kNames) {
      const char* value = std::getenv(name);
      before_.push_back(value ? std::optional<std::string>(value) : std::nullopt);
      unsetenv(name);
    }
  }
  ~Environment() {
    for (size_t i = 0; i < before_.size(); ++i) {
      if (before_[i]) {
        setenv(kNames[i], before_[i]->c_str(), 1);
      } else {
        unsetenv(kNames[i]);
      }
    }
  }
  static std::string get(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "(none)";
  }

 private:
  static constexpr const char* kNames[] = {"NCCL_DEBUG", "NCCL_DEBUG_FILE", "NCCL_COMM_BLOCKING",
                                           "TORCHELASTIC_ERROR_FILE"};
  std::vector<std::optional<std::string>> before_;
};

struct Folder {
  std::string path = std::filesystem::temp_directory_path() / "muster-warnings-XXXXXX";
  Folder() { REQUIRE(mkdtemp(path.data()) != nullptr); }
  ~Folder() { std::filesystem::remove_all(path); }
};

}  // namespace

TEST_CASE("NCCL's warnings go beside the error file") {
  const Environment environment;
  setenv("TORCHELASTIC_ERROR_FILE", "/logs/run/0/error.json", 1);
  prepare_nccl_environment();
  CHECK(Environment::get("NCCL_DEBUG") == "WARN");
  CHECK(Environment::get("NCCL_DEBUG_FILE") == "/logs/run/0/nccl.%p.log");
}

TEST_CASE("what the user says of NCCL's messages stays") {
  const Environment environment;
  setenv("TORCHELASTIC_ERROR_FILE", "/logs/run/0/error.json", 1);
  SUBCASE("how much") {
    setenv("NCCL_DEBUG", "INFO", 1);
    prepare_nccl_environment();
    CHECK(Environment::get("NCCL_DEBUG") == "INFO");
    CHECK(Environment::get("NCCL_DEBUG_FILE") == "(none)");
  }
  SUBCASE("where") {
    setenv("NCCL_DEBUG_FILE", "/elsewhere/%h", 1);
    prepare_nccl_environment();
    CHECK(Environment::get("NCCL_DEBUG") == "(none)");
    CHECK(Environment::get("NCCL_DEBUG_FILE") == "/elsewhere/%h");
  }
}

TEST_CASE("without an error file NCCL's messages go where they always go") {
  const Environment environment;
  prepare_nccl_environment();
  CHECK(Environment::get("NCCL_DEBUG") == "(none)");
  CHECK(Environment::get("NCCL_DEBUG_FILE") == "(none)");
}

TEST_CASE("blocking communicators cannot be ordered by the environment") {
  const Environment environment;
  setenv("NCCL_COMM_BLOCKING", "1", 1);
  prepare_nccl_environment();
  CHECK(Environment::get("NCCL_COMM_BLOCKING") == "(none)");
}

TEST_CASE("a debug file's pattern names the host and the process") {
  CHECK(expand_debug_file("/l/nccl.%p.log", "node1", 42) == "/l/nccl.42.log");
  CHECK(expand_debug_file("/l/%h/%p%%", "node1", 42) == "/l/node1/42%");
  CHECK(expand_debug_file("/l/%x%", "node1", 42) == "/l/%x%");
}

TEST_CASE("warnings are the last lines that are such, without their prefix") {
  const std::string text =
      "NCCL version 2.28.9+cuda13.0\n"
      "[2026-11-30 04:00:00] node1:7:9 [0] init.cc:99 NCCL WARN one\n"
      "node1:7:9 [0] NCCL INFO chatter\n"
      "node1:7:9 [0] init.cc:99 NCCL WARN two\n"
      "node1:7:9 [0] init.cc:99 NCCL WARN three\n"
      "node1:7:9 [0] init.cc:99 NCCL WARN cut off";
  CHECK(warnings_in(text, 2) == std::vector<std::string>{"three", "cut off"});
  CHECK(warnings_in(text, 9).size() == 4);
  CHECK(warnings_in("", 3).empty());
}

TEST_CASE("only the end of a large log is read") {
  const Environment environment;
  const Folder folder;
  setenv("NCCL_DEBUG_FILE", (folder.path + "/nccl.%p.log").c_str(), 1);
  CHECK(new_nccl_warnings().file.empty());  // nothing there yet
  const std::string path = folder.path + "/nccl." + std::to_string(getpid()) + ".log";
  {
    std::ofstream log(path);
    log << "h:1:1 [0] NCCL WARN long ago\n" << std::string(kWarningBytes, '.') << "\n";
    log << "h:1:1 [0] NCCL WARN lately\n";
  }
  const Warnings warnings = new_nccl_warnings();
  CHECK(warnings.file == path);
  CHECK(warnings.lines == std::vector<std::string>{"lately"});
}

TEST_CASE("a warning is told once") {
  const Environment environment;
  const Folder folder;
  const std::string path = folder.path + "/nccl.log";
  setenv("NCCL_DEBUG_FILE", path.c_str(), 1);
  const auto warn = [&](const char* text, std::ios::openmode mode) {
    std::ofstream(path, mode) << "h:1:1 [0] NCCL WARN " << text << "\n";
  };
  using Lines = std::vector<std::string>;
  warn("the first", std::ios::out);
  CHECK(new_nccl_warnings().lines == Lines{"the first"});
  CHECK(new_nccl_warnings().lines.empty());
  CHECK(new_nccl_warnings().file == path);  // there is still more to read there
  warn("the second", std::ios::app);
  CHECK(new_nccl_warnings().lines == Lines{"the second"});
  warn("anew", std::ios::trunc);
  CHECK(new_nccl_warnings().lines == Lines{"anew"});
}

}  // namespace muster::comm::detail
