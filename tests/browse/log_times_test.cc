// SPDX-License-Identifier: Apache-2.0
#include "supervisor/browse/log_times.h"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <random>

#include "browse/browse_fixture.h"
#include "supervisor/logs/log_file.h"
#include "supervisor/logs/times_file.h"

namespace muster {

namespace {

constexpr int64_t kStart = 1'790'000'000'000'000;

// A file of times and the entries that are in it.
struct TimesTest : BrowseTest {
  std::string times_file_path = times_path(path);
  std::vector<TimeEntry> entries;

  void write(int count, int64_t longest_step_us) {
    std::mt19937 random(5);
    TimesFile file(times_file_path);
    TimeEntry entry{0, kStart};
    for (int i = 0; i < count; ++i) {
      file.note(entry.offset, entry.time_us);
      entries.push_back(entry);
      entry.offset += 1 + static_cast<int64_t>(random() % 5'000);
      entry.time_us +=
          TimesEncoder::kLeastInterval + static_cast<int64_t>(random()) % longest_step_us;
    }
  }
};

}  // namespace

TEST_CASE_FIXTURE(TimesTest, "every byte has the time of the last entry at or before it") {
  write(50'000, 1'000'000);
  UniqueFd fd(::open(times_file_path.c_str(), O_RDONLY));
  LogTimes times(fd.get());
  CHECK(times.any());
  for (size_t i = 0; i < entries.size(); i += 7) {
    CHECK(times.time_of(entries[i].offset) == entries[i].time_us);
    if (i + 1 < entries.size())
      CHECK(times.time_of(entries[i + 1].offset - 1) == entries[i].time_us);
  }
  CHECK(times.time_of(entries.front().offset) == kStart);
  CHECK(times.time_of(INT64_MAX) == entries.back().time_us);
  CHECK(std::filesystem::file_size(times_file_path) < 50'000 * 6);
}

TEST_CASE_FIXTURE(TimesTest, "a time leads to the first entry at or after it") {
  write(20'000, 1'000'000);
  UniqueFd fd(::open(times_file_path.c_str(), O_RDONLY));
  LogTimes times(fd.get());
  for (size_t i = 1; i < entries.size(); i += 13) {
    CHECK(times.first_since(entries[i].time_us)->offset == entries[i].offset);
    CHECK(times.first_since(entries[i].time_us - 1)->offset == entries[i].offset);
    CHECK(times.first_since(entries[i - 1].time_us + 1)->offset == entries[i].offset);
  }
  CHECK(times.first_since(0)->offset == 0);
  CHECK_FALSE(times.first_since(entries.back().time_us + 1).has_value());
}

TEST_CASE("entries come at most ten times a second, and a clock that goes back is held") {
  TimesEncoder encoder;
  CHECK_FALSE(encoder.add({0, kStart}).bytes.empty());
  CHECK(encoder.add({10, kStart + 99'999}).bytes.empty());
  CHECK_FALSE(encoder.add({20, kStart + 100'000}).bytes.empty());
  CHECK(encoder.add({20, kStart + 300'000}).bytes.empty());
  CHECK(encoder.add({30, kStart - 500'000}).bytes.empty());
  auto entry = encoder.add({40, kStart + 250'000});
  CHECK(entry.bytes.size() < 8);
}

TEST_CASE("the times of a stream that always writes stay small in a month") {
  int64_t bytes = 0;
  constexpr int64_t kMonth = int64_t{30} * 24 * 3'600 * 1'000'000;
  // Hours that are alike are counted once: a day's first minute stands for the day.
  for (int64_t day = 0; day < 30; ++day) {
    TimesEncoder aged;
    aged.add({0, kStart});
    int64_t place = aged.add({1, kStart + day * (kMonth / 30) + 100'000}).place;
    int64_t last = place;
    for (int64_t i = 1; i <= 600; ++i) {
      auto entry = aged.add({1 + i * 100'000, kStart + day * (kMonth / 30) + (i + 1) * 100'000});
      if (!entry.bytes.empty()) last = entry.place;
    }
    bytes += (last - place) * 24 * 60;
  }
  CHECK(bytes < int64_t{40} << 20);
}

TEST_CASE_FIXTURE(TimesTest, "a file of times that makes no sense is answered in bounded time") {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    std::string bytes;
    for (size_t i = 0; i < 3 * kTimesBlock; ++i)
      bytes += static_cast<char>(random() % (round % 2 == 0 ? 256 : 3));
    write_file(times_file_path, bytes);
    UniqueFd fd(::open(times_file_path.c_str(), O_RDONLY));
    LogTimes times(fd.get());
    times.time_of(static_cast<int64_t>(random()));
    times.first_since(static_cast<int64_t>(random()));
  }
}

TEST_CASE_FIXTURE(TimesTest, "the record of a cut comes back, and nothing else passes for one") {
  LogCut cut{5, 100, 2'000, 300, 900, 2'500, 77};
  std::string bytes = encode_cut(cut);
  CHECK(bytes.size() == static_cast<size_t>(kTimesHead));
  CHECK(decode_cut(bytes) == cut);
  for (size_t i = 0; i < 72; ++i) {
    std::string other = bytes;
    other[i] = static_cast<char>(other[i] ^ 1);
    CHECK_FALSE(decode_cut(other).has_value());
  }
  CHECK_FALSE(decode_cut(bytes.substr(1)).has_value());
  CHECK_FALSE(decode_cut(encode_cut({1, 0, 5, 0, 0, 0, 0})).has_value());
  CHECK_FALSE(decode_cut(encode_cut({1, 10, 5, 200, 100, 0, 0})).has_value());
}

TEST_CASE_FIXTURE(TimesTest, "lines of a log have the times at which they came") {
  auto file = LogFile::create_later(path, 0);
  file->keep_times(times_file_path);
  for (int i = 0; i < 100; ++i)
    file->append(numbered_line(i), kStart + i * 1'000'000);
  LogPage page = tail(100);
  REQUIRE(page.lines.size() == 100);
  for (int i = 0; i < 100; ++i)
    CHECK(page.lines[static_cast<size_t>(i)].time_us == kStart + i * 1'000'000);
  page = read(From::kTime, kStart + 41'500'000, 2);
  REQUIRE(page.lines.size() == 2);
  CHECK(page.lines[0].number == 42);
  CHECK(read(From::kTime, 0, 1).lines[0].number == 0);
  CHECK(read(From::kTime, kStart + 100'000'000, 1).lines.empty());
}

TEST_CASE_FIXTURE(TimesTest, "a line that began before the time asked for is not of that time") {
  auto file = LogFile::create_later(path, 0);
  file->keep_times(times_file_path);
  file->append("begin", kStart);
  file->append(" end\nnext\n", kStart + 1'000'000);
  LogPage page = read(From::kTime, kStart + 500'000, 5);
  REQUIRE(page.lines.size() == 1);
  CHECK(page.lines[0].text == "next");
}

TEST_CASE_FIXTURE(TimesTest, "a log without times says so when it is asked by time") {
  write_file(path, "a\n");
  Result<LogPage> page = try_read(log_query(From::kTime, kStart, 1));
  REQUIRE_FALSE(page.has_value());
  CHECK(page.error().code == ENODATA);
  CHECK(tail(1).lines[0].time_us == 0);
}

TEST_CASE_FIXTURE(TimesTest, "times that cannot be written cost the log nothing") {
  auto file = LogFile::create_later(path, 0);
  file->keep_times(dir.path + "/missing/stdout.times");
  CHECK(file->append("a\n", kStart).error == 0);
  CHECK(file->append("b\n", kStart + 1'000'000).error == 0);
  CHECK(read_file(path) == "a\nb\n");
}

TEST_CASE_FIXTURE(TimesTest, "the times of a log that somebody empties start anew") {
  auto file = LogFile::create_later(path, 0);
  file->keep_times(times_file_path);
  file->append(numbered_lines(0, 100), kStart);
  write_file(path, "");
  file->append("new\n", kStart + 5'000'000);
  LogPage page = tail(5);
  REQUIRE(page.lines.size() == 1);
  CHECK(page.lines[0].text == "new");
  CHECK(page.lines[0].time_us == kStart + 5'000'000);
}

}  // namespace muster
