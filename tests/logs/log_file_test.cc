// SPDX-License-Identifier: Apache-2.0
#include "supervisor/logs/log_file.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "logs/temp_dir.h"

namespace muster {

namespace {

std::string numbered_line(int i) {
  char line[64];
  std::snprintf(line, sizeof line, "line %08d of many that are all of one length\n", i);
  return line;
}

}  // namespace

TEST_CASE("a complete log has every byte") {
  TempDir dir;
  auto file = LogFile::create(dir.path + "/log", 0);
  REQUIRE(file.has_value());
  std::string all;
  for (int i = 0; i < 10'000; ++i) {
    all += numbered_line(i);
    CHECK((*file)->append(numbered_line(i)).error == 0);
  }
  (*file)->finish();
  CHECK(read_file((*file)->path()) == all);
}

TEST_CASE("a log made later is there from its first bytes on") {
  TempDir dir;
  auto file = LogFile::create_later(dir.path + "/log", LogFile::kMinLimit);
  file->finish();
  CHECK(::access(file->path().c_str(), F_OK) != 0);
  CHECK(file->append("first\n").error == 0);
  CHECK(read_file(file->path()) == "first\n");
}

TEST_CASE("a log that cannot be made later says what it lost") {
  auto file = LogFile::create_later("/nonexistent/log", LogFile::kMinLimit);
  LogFile::Written written = file->append("gone\n");
  CHECK(written.error == ENOENT);
  CHECK(written.lost == 5);
}

TEST_CASE("a bounded log below its limit has every byte") {
  TempDir dir;
  auto file = LogFile::create(dir.path + "/log", LogFile::kMinLimit);
  REQUIRE(file.has_value());
  std::string all(LogFile::kMinLimit, 'x');
  CHECK((*file)->append(all).error == 0);
  (*file)->finish();
  CHECK(read_file((*file)->path()) == all);
}

TEST_CASE("a bounded log keeps its head and its newest part and marks the gap") {
  for (int batch : {1, 10, 1000}) {
    TempDir dir;
    auto file = LogFile::create(dir.path + "/log", 1 << 20);
    REQUIRE(file.has_value());
    std::string pending;
    constexpr int kLines = 200'000;
    size_t written = 0;
    for (int i = 0; i < kLines; ++i) {
      pending += numbered_line(i);
      if ((i + 1) % batch != 0) continue;
      CHECK((*file)->append(pending).error == 0);
      written += pending.size();
      pending.clear();
    }
    (*file)->finish();
    std::string text = read_file((*file)->path());
    CHECK(text.size() <= (1 << 20));
    CHECK(text.size() >= (1 << 20) / 3);
    size_t marker = text.find("\n[muster: ");
    REQUIRE(marker != std::string::npos);
    size_t after = text.find('\n', marker + 1) + 1;
    // The head is the first lines, the rest the last ones, both without a hole.
    size_t length = numbered_line(0).size();
    CHECK(marker % length == 0);
    CHECK((text.size() - after) % length == 0);
    for (size_t at = 0; at < marker; at += length)
      REQUIRE(text.compare(at, length, numbered_line(static_cast<int>(at / length))) == 0);
    int first_kept = kLines - static_cast<int>((text.size() - after) / length);
    for (int i = first_kept; i < kLines; ++i)
      REQUIRE(text.compare(after + static_cast<size_t>(i - first_kept) * length, length,
                           numbered_line(i)) == 0);
    size_t left_out = std::strtoull(text.c_str() + marker + 10, nullptr, 10);
    CHECK(left_out + marker + text.size() - after == written);
  }
}

TEST_CASE("a bounded log that its reader empties starts anew") {
  TempDir dir;
  auto file = LogFile::create(dir.path + "/log", 1 << 20);
  REQUIRE(file.has_value());
  CHECK((*file)->append("old\n").error == 0);
  write_file((*file)->path(), "");
  CHECK((*file)->append("new\n").error == 0);
  CHECK(read_file((*file)->path()) == "new\n");
}

TEST_CASE("a full disk says how much is lost") {
  auto file = LogFile::create("/dev/full", 0);
  REQUIRE(file.has_value());
  LogFile::Written written = (*file)->append("12345");
  CHECK(written.error == ENOSPC);
  CHECK(written.lost == 5);
}

TEST_CASE("a log in a missing folder names its path") {
  auto file = LogFile::create("/nonexistent/log", 0);
  REQUIRE_FALSE(file.has_value());
  CHECK(file.error().code == ENOENT);
  CHECK(file.error().message.find("/nonexistent/log") != std::string::npos);
}

}  // namespace muster
