// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <cinttypes>
#include <cstdlib>
#include <thread>

#include "browse/browse_fixture.h"
#include "supervisor/browse/log_bytes.h"
#include "supervisor/logs/log_file.h"

namespace muster {

namespace {

constexpr int64_t kStart = 1'790'000'000'000'000;

// Every line says its own number and offset, so that a wrong byte is seen at once.
std::string true_line(int64_t number) {
  char line[64];
  std::snprintf(line, sizeof line, "%012" PRId64 " at %014" PRId64 "\n", number, number * 31);
  return line;
}

void check_true(const LogLine& line) {
  REQUIRE(line.offset % 31 == 0);
  REQUIRE(line.ended);
  REQUIRE(line.text + "\n" == true_line(line.offset / 31));
  if (line.number >= 0) REQUIRE(line.number == line.offset / 31);
}

// A bounded log that has been cut.
struct CutTest : BrowseTest {
  std::shared_ptr<LogFile> file;
  int64_t written = 0;

  void begin(int64_t limit = LogFile::kMinLimit) {
    file = LogFile::create_later(path, limit);
    file->keep_times(times_path(path));
  }
  void write_lines(int count) {
    std::string text;
    for (int i = 0; i < count; ++i)
      text += true_line(written++);
    CHECK(file->append(text, kStart + written * 1'000).error == 0);
  }
  // Reads every page from the beginning and checks each line.
  int64_t check_all() {
    int64_t lines = 0, offset = 0;
    while (true) {
      LogPage page = read(From::kOffset, offset, 500);
      for (const LogLine& line : page.lines)
        check_true(line);
      lines += static_cast<int64_t>(page.lines.size());
      if (page.end == page.size) return lines;
      offset = page.end;
    }
  }
};

}  // namespace

TEST_CASE_FIXTURE(CutTest, "a log that was cut keeps the offsets and numbers of what is left") {
  begin();
  for (int i = 0; i < 1'000; ++i)
    write_lines(20);
  LogPage page = tail(5);
  REQUIRE(page.lines.size() == 5);
  CHECK(page.size == 20'000 * 31);
  CHECK(page.total_lines == 20'000);
  CHECK(page.lines[4].number == 19'999);
  CHECK(page.hole_begin > 0);
  CHECK(page.hole_end > page.hole_begin);
  CHECK(check_all() * 31 == page.size - (page.hole_end - page.hole_begin));
  file->finish();
  page = tail(5);
  CHECK(check_all() * 31 == page.size - (page.hole_end - page.hole_begin));
  CHECK(page.lines[0].time_us > kStart);
}

TEST_CASE_FIXTURE(CutTest, "at every step of a cut every line is where it should be") {
  begin(4 << 20);
  int steps = 0;
  while (written < 400'000) {
    write_lines(1'000);
    if (!file->finished()) ++steps;
    LogPage page = tail(3);
    for (const LogLine& line : page.lines)
      check_true(line);
    CHECK(page.size == written * 31);
    if (written % 80'000 == 0) check_all();
  }
  CHECK(steps > 3);
}

TEST_CASE_FIXTURE(CutTest, "a page before, in and behind the hole") {
  begin();
  for (int i = 0; i < 1'000; ++i)
    write_lines(20);
  LogPage page = tail(1);
  int64_t begin = page.hole_begin, end = page.hole_end;
  page = read(From::kOffset, begin + 1'000, 3);
  REQUIRE(page.lines.size() == 3);
  CHECK(page.lines[0].offset == end);
  page = read(From::kLine, begin / 31 + 5, 3);
  CHECK(page.lines[0].offset == end);
  page = read(From::kLine, begin / 31 - 2, 4);
  REQUIRE(page.lines.size() == 4);
  CHECK(page.lines[1].offset == begin - 31);
  CHECK(page.lines[2].offset == end);
  CHECK(page.lines[2].number == end / 31);
  page = read(From::kTail, end + 31, 3);
  REQUIRE(page.lines.size() == 3);
  CHECK(page.lines[0].offset == begin - 2 * 31);
  CHECK(page.lines[2].offset == end);
  page = read(From::kTail, begin + 500, 2);
  REQUIRE(page.lines.size() == 2);
  CHECK(page.lines[1].offset == begin - 31);
  page = read(From::kLine, end / 31 + 7, 1);
  CHECK(page.lines[0].offset == end + 7 * 31);
}

TEST_CASE_FIXTURE(CutTest, "a cut in the middle of a long line leaves its two ends") {
  begin();
  file->append(std::string(200'000, 'a') + "\nb\n", kStart);
  file->finish();
  LogPage page = tail(10);
  REQUIRE(page.lines.size() == 3);
  CHECK(page.lines[0].offset == 0);
  CHECK(page.lines[0].size == page.hole_begin);
  CHECK(page.lines[1].offset == page.hole_end);
  CHECK(page.lines[1].offset + page.lines[1].size == 200'000);
  CHECK(page.lines[2].text == "b");
  CHECK(page.lines[2].number == 1);
  CHECK(page.total_lines == 2);
}

TEST_CASE_FIXTURE(CutTest, "a log whose muster was killed in the middle of a cut is read right") {
  begin(4 << 20);
  while (file->finished())
    write_lines(1'000);
  // Nobody ends this cut: this is what a kill leaves.
  CHECK_FALSE(file->finished());
  LogPage page = tail(1);
  CHECK(page.size == written * 31);
  CHECK(check_all() * 31 == page.size - (page.hole_end - page.hole_begin));
}

TEST_CASE_FIXTURE(CutTest, "without the record a cut log is a plain file") {
  begin();
  for (int i = 0; i < 1'000; ++i)
    write_lines(20);
  file->finish();
  std::filesystem::remove(times_path(path));
  LogPage page = tail(1);
  CHECK(page.size == static_cast<int64_t>(std::filesystem::file_size(path)));
  CHECK(page.hole_end == 0);
}

TEST_CASE_FIXTURE(CutTest, "pages are right while a writer cuts all the time") {
  begin();
  std::atomic<bool> stop{false};
  write_lines(1);
  std::thread writer([&] {
    while (!stop) {
      std::string text;
      for (int i = 0; i < 50; ++i)
        text += true_line(written++);
      file->append(text, kStart + written * 1'000);
    }
  });
  int64_t lines = 0, holes = 0;
  int64_t hole_end = 0;
  for (int round = 0; round < 400; ++round) {
    LogPage page = round % 3 == 0   ? tail(300)
                   : round % 3 == 1 ? read(From::kOffset, hole_end + 31 * 100, 300)
                                    : read(From::kLine, hole_end / 31 + 10, 300);
    for (const LogLine& line : page.lines) {
      // The last one may just be being written.
      if (line.ended) check_true(line);
    }
    lines += static_cast<int64_t>(page.lines.size());
    if (page.hole_end != hole_end) ++holes;
    hole_end = page.hole_end;
  }
  stop = true;
  writer.join();
  CHECK(lines > 10'000);
  CHECK(holes > 20);
}

TEST_CASE_FIXTURE(CutTest, "a follower gets every line once while a writer cuts all the time") {
  begin(256 * 1024);
  std::atomic<bool> stop{false};
  write_lines(1);
  std::thread writer([&] {
    while (!stop) {
      std::string text;
      for (int i = 0; i < 50; ++i)
        text += true_line(written++);
      file->append(text, kStart + written * 1'000);
      std::this_thread::yield();
    }
  });
  int64_t next = 0, got = 0, jumps = 0, pages = 0;
  auto follower = reader.follow(path, {}, [&](Result<LogPage> page) {
    REQUIRE(page.has_value());
    ++pages;
    for (const LogLine& line : page->lines) {
      if (!line.ended) continue;
      check_true(line);
      REQUIRE(line.offset >= next);
      jumps += line.offset > next;
      next = line.offset + 31;
      ++got;
    }
  });
  REQUIRE(run_until([&] { return got > 30'000 && pages > 30; }));
  stop = true;
  writer.join();
  REQUIRE(run_until([&] { return next == written * 31; }));
}

}  // namespace muster
