// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <unistd.h>

#include <cerrno>

#include "browse/browse_fixture.h"
#include "loop/timer.h"

namespace muster {

namespace {

using Texts = std::vector<std::string>;

struct FollowTest : BrowseTest {
  std::vector<LogPage> pages;
  std::optional<Error> error;
  std::unique_ptr<LogReader::Follower> follower;

  void follow(LogReader::FollowSettings settings = {}) {
    follower = reader.follow(path, settings, [this](Result<LogPage> page) {
      if (page) {
        pages.push_back(std::move(*page));
      } else {
        error = page.error();
      }
    });
  }
  // Whole lines so far.
  Texts lines() const {
    Texts all;
    for (const LogPage& page : pages) {
      for (const LogLine& line : page.lines)
        if (line.ended) all.push_back(line.text);
    }
    return all;
  }
  bool gets(size_t count) {
    return run_until([&] { return lines().size() >= count; });
  }
};

}  // namespace

TEST_CASE_FIXTURE(FollowTest, "a follower gets what is there and then each line once") {
  write_file(path, "a\nb\n");
  follow();
  REQUIRE(gets(2));
  for (int i = 0; i < 50; ++i) {
    append(numbered_line(i));
    REQUIRE(gets(static_cast<size_t>(3 + i)));
  }
  Texts got = lines();
  REQUIRE(got.size() == 52);
  CHECK(got[1] == "b");
  for (int i = 0; i < 50; ++i)
    CHECK(got[static_cast<size_t>(2 + i)] + "\n" == numbered_line(i));
  int64_t end = 0;
  int64_t number = 0;
  for (const LogPage& page : pages) {
    CHECK(page.offset == end);
    end = page.end;
    for (const LogLine& line : page.lines)
      CHECK(line.number == number++);
  }
}

TEST_CASE_FIXTURE(FollowTest, "a follower may begin in the middle and knows its line numbers") {
  write_file(path, numbered_lines(0, 10'000));
  LogReader::FollowSettings settings;
  settings.offset = 9'990 * 16;
  follow(settings);
  REQUIRE(gets(10));
  CHECK(lines().front() == "line 0000009990");
  CHECK(pages.front().lines.front().number == 9'990);
}

TEST_CASE_FIXTURE(FollowTest, "a log that comes into being later is noticed") {
  follow();
  run_until([] { return false; }, Milliseconds(200));
  CHECK(pages.empty());
  append("hello\n");
  REQUIRE(gets(1));
  CHECK(lines() == Texts{"hello"});
}

TEST_CASE_FIXTURE(FollowTest, "a log whose folder comes into being later is noticed") {
  path = dir.path + "/attempt_1/0/stdout.log";
  follow();
  run_until([] { return false; }, Milliseconds(100));
  std::filesystem::create_directories(dir.path + "/attempt_1/0");
  write_file(path, "hello\n");
  REQUIRE(gets(1));
}

TEST_CASE_FIXTURE(FollowTest, "an unfinished line is shown, grows and ends") {
  write_file(path, "whole\npart");
  follow();
  REQUIRE(run_until([&] { return !pages.empty() && !pages.back().lines.back().ended; }));
  CHECK(pages.back().lines.size() == 1);
  CHECK(pages.back().lines[0].text == "part");
  CHECK(pages.back().offset == 6);
  CHECK(pages.back().end == 6);
  append(" and more");
  REQUIRE(run_until([&] { return pages.back().lines.back().text == "part and more"; }));
  CHECK_FALSE(pages.back().lines.back().ended);
  append("\n");
  REQUIRE(gets(2));
  CHECK(lines() == Texts{"whole", "part and more"});
}

TEST_CASE_FIXTURE(FollowTest, "an unfinished line of megabytes is read once") {
  follow();
  std::string all;
  for (int i = 0; i < 60; ++i) {
    std::string bar;
    for (int k = 0; k < 1'000; ++k)
      bar += "\rstep " + std::to_string(i * 1'000 + k);
    append(bar);
    all += bar;
    std::string last = "step " + std::to_string(i * 1'000 + 999);
    REQUIRE(run_until(
        [&] { return !pages.empty() && pages.back().lines.back().text.ends_with(last); }));
    CHECK(pages.back().lines.back().size == static_cast<int64_t>(all.size()));
  }
  CHECK(pages.back().lines.back().text.size() <= (16 << 10));
  append("\nend\n");
  REQUIRE(gets(2));
  CHECK(lines().back() == "end");
}

TEST_CASE_FIXTURE(FollowTest, "no page is made while paused, and nothing is missing after it") {
  write_file(path, "a\n");
  follow();
  REQUIRE(gets(1));
  follower->set_paused(true);
  append("b\nc\n");
  run_until([] { return false; }, Milliseconds(300));
  CHECK(lines() == Texts{"a"});
  follower->set_paused(false);
  REQUIRE(gets(3));
  append("d\n");
  REQUIRE(gets(4));
  CHECK(lines() == Texts{"a", "b", "c", "d"});
}

TEST_CASE_FIXTURE(FollowTest, "a follower that is far behind jumps to a line near the end") {
  write_file(path, "a\n");
  LogReader::FollowSettings settings;
  settings.max_lag = 100'000;
  settings.max_bytes = 10'000;
  follow(settings);
  REQUIRE(gets(1));
  follower->set_paused(true);
  append(numbered_lines(0, 100'000));
  follower->set_paused(false);
  REQUIRE(run_until([&] { return pages.back().end == 2 + 1'600'000; }));
  REQUIRE(pages.size() >= 2);
  CHECK(pages[1].offset > pages[0].end);
  CHECK((pages[1].offset - 2) % 16 == 0);
  CHECK(pages[1].lines[0].text + "\n" == numbered_line((pages[1].offset - 2) / 16));
  CHECK(lines().size() < 2'000);
}

TEST_CASE_FIXTURE(FollowTest, "a log that was emptied starts again from its beginning") {
  write_file(path, numbered_lines(0, 100));
  follow();
  REQUIRE(gets(100));
  write_file(path, "new\n");
  REQUIRE(gets(101));
  CHECK(lines().back() == "new");
  CHECK(pages.back().offset == 0);
}

TEST_CASE_FIXTURE(FollowTest, "a log that vanishes and comes back is another log") {
  write_file(path, "old\n");
  follow();
  REQUIRE(gets(1));
  std::filesystem::remove(path);
  run_until([] { return false; }, Milliseconds(200));
  write_file(path, "a new one that is longer\n");
  REQUIRE(gets(2));
  CHECK(lines().back() == "a new one that is longer");
}

TEST_CASE_FIXTURE(FollowTest, "a log that cannot be read ends its follower with why") {
  std::filesystem::create_directory(path);
  follow();
  REQUIRE(run_until([&] { return error.has_value(); }));
  CHECK(error->code == EINVAL);
}

TEST_CASE_FIXTURE(FollowTest, "a callback may drop its follower") {
  write_file(path, "a\nb\n");
  int calls = 0;
  follower = reader.follow(path, {}, [&](Result<LogPage>) {
    ++calls;
    follower.reset();
  });
  REQUIRE(run_until([&] { return calls > 0; }));
  append("c\n");
  run_until([] { return false; }, Milliseconds(150));
  CHECK(calls == 1);
}

TEST_CASE_FIXTURE(FollowTest, "a silent log costs no looking") {
  write_file(path, "a\n");
  follow();
  REQUIRE(gets(1));
  run_until([&] { return !reader_busy(); });
  run_until([] { return false; }, Milliseconds(200));
  int64_t pieces = reader.gate().pieces();
  run_until([] { return false; }, Milliseconds(1'500));
  CHECK(reader.gate().pieces() == pieces);
}

TEST_CASE_FIXTURE(FollowTest, "a log that is written all the time is looked at now and then") {
  write_file(path, "");
  follow();
  run_until([] { return false; }, Milliseconds(100));
  int64_t pieces = reader.gate().pieces();
  int written = 0;
  auto writing = Timer::repeat(loop, Milliseconds(1), [&] { append(numbered_line(written++)); });
  run_until([] { return false; }, Milliseconds(1'000));
  writing.reset();
  REQUIRE(gets(static_cast<size_t>(written)));
  // Two looks for each 50 ms: one that finds lines, one that finds no more.
  CHECK(reader.gate().pieces() - pieces <= 3 * 1'000 / 50 + 10);
}

TEST_CASE_FIXTURE(FollowTest, "so many followers and no more") {
  write_file(path, "a\n");
  std::vector<std::unique_ptr<LogReader::Follower>> many;
  size_t pages_seen = 0;
  for (size_t i = 0; i < LogReader::kMaxFollowers; ++i)
    many.push_back(
        reader.follow(path, {}, [&](Result<LogPage> page) { pages_seen += bool(page); }));
  follow();
  REQUIRE(run_until([&] { return error.has_value(); }));
  CHECK(error->code == EMFILE);
  REQUIRE(run_until([&] { return pages_seen == LogReader::kMaxFollowers; }));
  many.pop_back();
  follow();
  CHECK(gets(1));
}

}  // namespace muster
