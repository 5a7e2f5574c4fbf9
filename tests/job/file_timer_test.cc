// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/file_timer.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <memory>

#include "loop/loop_test.h"

namespace muster {

namespace {

// A scratch folder that goes with the test.
struct Scratch {
  std::string path;
  Scratch() {
    char name[] = "/tmp/muster_timer_XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    path = name;
  }
  ~Scratch() { rmdir(path.c_str()); }
};

void write_line(const std::string& path, const std::string& line) {
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_NONBLOCK));
  REQUIRE(write(fd.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size()));
}

}  // namespace

TEST_CASE("a timer request is read as the client writes it") {
  auto request = parse_timer_request(
      R"({"version": 1, "pid": 42, "scope_id": "step", "expiration_time": 12.5, "signal": 9})");
  REQUIRE(request);
  CHECK(request->pid == 42);
  CHECK(request->scope_id == "step");
  CHECK(request->expiration_time == 12.5);
  CHECK(request->signal == 9);
}

TEST_CASE("what is not a request of version 1 is ignored") {
  CHECK_FALSE(parse_timer_request(""));
  CHECK_FALSE(parse_timer_request("{"));
  CHECK_FALSE(parse_timer_request("[1]"));
  CHECK_FALSE(parse_timer_request(
      R"({"version": 2, "pid": 42, "scope_id": "s", "expiration_time": 1, "signal": 9})"));
  CHECK_FALSE(parse_timer_request(
      R"({"version": 1, "pid": "x", "scope_id": "s", "expiration_time": 1, "signal": 9})"));
}

TEST_CASE("of a process's expired timers the first with a signal counts, and all are gone") {
  TimerTable table;
  table.apply({1, "a", 10, 0});
  table.apply({1, "b", 10, 15});
  table.apply({1, "c", 10, 9});
  table.apply({2, "a", 20, 9});
  CHECK(table.next_expiration() == 10);
  auto expired = table.take_expired(10);
  REQUIRE(expired.size() == 1);
  CHECK(expired[0].signal == 15);
  CHECK(table.next_expiration() == 20);
}

TEST_CASE("a released timer does not expire") {
  TimerTable table;
  table.apply({1, "a", 10, 9});
  table.apply({1, "a", -1, 9});
  CHECK_FALSE(table.next_expiration());
}

TEST_CASE_FIXTURE(LoopTest, "an expired request written in two pieces reaches the owner") {
  Scratch scratch;
  std::vector<TimerRequest> expired;
  auto timer = FileTimer::open(loop, scratch.path + "/timer",
                               [&](const TimerRequest& request) { expired.push_back(request); });
  REQUIRE(timer.has_value());
  write_line((*timer)->path(), R"({"version": 1, "pid": 7, "scope_id": "s", )");
  write_line((*timer)->path(), "\"expiration_time\": 1, \"signal\": 9}\n");
  CHECK(run_until([&] { return !expired.empty(); }));
  CHECK(expired[0].pid == 7);
}

TEST_CASE_FIXTURE(LoopTest, "the pipe is removed with its owner") {
  Scratch scratch;
  std::string path = scratch.path + "/timer";
  struct stat info {};
  {
    auto timer = FileTimer::open(loop, path, [](const TimerRequest&) {});
    REQUIRE(timer.has_value());
    REQUIRE(stat(path.c_str(), &info) == 0);
    CHECK(S_ISFIFO(info.st_mode));
  }
  CHECK(stat(path.c_str(), &info) != 0);
}

}  // namespace muster
