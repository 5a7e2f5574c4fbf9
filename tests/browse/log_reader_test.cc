// SPDX-License-Identifier: Apache-2.0
#include "supervisor/browse/log_reader.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "browse/browse_fixture.h"

namespace muster {

using Texts = std::vector<std::string>;

TEST_CASE_FIXTURE(BrowseTest, "a log that does not exist is a page that says so") {
  LogPage page = tail(10);
  CHECK_FALSE(page.exists);
  CHECK(page.lines.empty());
}

TEST_CASE_FIXTURE(BrowseTest, "an empty log has written nothing") {
  write_file(path, "");
  CHECK_FALSE(tail(10).exists);
}

TEST_CASE_FIXTURE(BrowseTest, "the tail is the last lines with their numbers") {
  write_file(path, numbered_lines(0, 1'000));
  LogPage page = tail(3);
  REQUIRE(page.lines.size() == 3);
  CHECK(texts(page) == Texts{"line 0000000997", "line 0000000998", "line 0000000999"});
  CHECK(page.exists);
  CHECK(page.lines[0].number == 997);
  CHECK(page.lines[0].offset == 997 * 16);
  CHECK(page.lines[0].size == 15);
  CHECK(page.lines[0].ended);
  CHECK(page.offset == 997 * 16);
  CHECK(page.end == 16'000);
  CHECK(page.size == 16'000);
  CHECK(page.total_lines == 1'000);
}

TEST_CASE_FIXTURE(BrowseTest, "a tail longer than the log is the log") {
  write_file(path, "a\n\nb\n");
  CHECK(texts(tail(100)) == Texts{"a", "", "b"});
  CHECK(tail(100).offset == 0);
}

TEST_CASE_FIXTURE(BrowseTest, "the lines before an offset end at it") {
  write_file(path, numbered_lines(0, 100));
  LogPage page = read(From::kTail, 50 * 16, 2);
  CHECK(texts(page) == Texts{"line 0000000048", "line 0000000049"});
  CHECK(page.end == 50 * 16);
  CHECK(page.lines[0].number == 48);
}

TEST_CASE_FIXTURE(BrowseTest, "a last line without newline has not ended and comes again") {
  write_file(path, "one\ntwo");
  LogPage page = tail(10);
  REQUIRE(texts(page) == Texts{"one", "two"});
  CHECK_FALSE(page.lines[1].ended);
  CHECK(page.end == 4);
  CHECK(page.total_lines == 2);
  append(" more\n");
  page = read(From::kOffset, page.end, 10);
  REQUIRE(texts(page) == Texts{"two more"});
  CHECK(page.lines[0].ended);
  CHECK(page.lines[0].number == 1);
}

TEST_CASE_FIXTURE(BrowseTest, "an offset gives the line that contains it") {
  write_file(path, "first\nsecond\nthird\n");
  for (int64_t offset : {6, 8, 12}) {
    LogPage page = read(From::kOffset, offset, 1);
    REQUIRE(page.lines.size() == 1);
    CHECK(page.lines[0].text == "second");
    CHECK(page.lines[0].number == 1);
    CHECK(page.end == 13);
  }
  CHECK(texts(read(From::kOffset, 13, 1)) == Texts{"third"});
  CHECK(read(From::kOffset, 19, 1).lines.empty());
  CHECK(read(From::kOffset, 1'000, 1).lines.empty());
  CHECK(texts(read(From::kOffset, -5, 1)) == Texts{"first"});
}

TEST_CASE_FIXTURE(BrowseTest, "a line is found by its number") {
  write_file(path, numbered_lines(0, 100'000));
  for (int64_t number : {0, 1, 4'095, 4'096, 50'000, 99'999}) {
    LogPage page = read(From::kLine, number, 1);
    REQUIRE(page.lines.size() == 1);
    CHECK(page.lines[0].text + "\n" == numbered_line(number));
    CHECK(page.lines[0].number == number);
    CHECK(page.lines[0].offset == number * 16);
  }
  CHECK(read(From::kLine, 100'000, 1).lines.empty());
  CHECK(read(From::kLine, INT64_MAX, 1).lines.empty());
  CHECK(texts(read(From::kLine, -3, 1)) == Texts{"line 0000000000"});
}

TEST_CASE_FIXTURE(BrowseTest, "pages by bytes hold at least one line and no more than asked for") {
  write_file(path, std::string(1'000, 'x') + "\nshort\n" + std::string(50, 'y') + "\n");
  LogQuery query = log_query(From::kOffset, 0, 10);
  query.max_bytes = 60;
  CHECK(read(query).lines.size() == 1);
  query.position = 1'001;
  CHECK(texts(read(query)) == Texts{"short", std::string(50, 'y')});
  query.max_bytes = 54;
  CHECK(texts(read(query)) == Texts{"short"});
  query.from = From::kTail;
  query.position = 0;
  CHECK(texts(read(query)) == Texts{std::string(50, 'y')});
}

TEST_CASE_FIXTURE(BrowseTest, "any bytes are passed on as they were written") {
  std::string odd("\0nul\xff\xfe\x80 \x1b[31m", 14);
  write_file(path, odd + "\n<script>\r\n\xe2\x80\xae\n");
  CHECK(texts(tail(10)) == Texts{odd, "<script>\r", "\xe2\x80\xae"});
}

TEST_CASE_FIXTURE(BrowseTest, "a line of megabytes is cut and the next one is found") {
  write_file(path, "before\n" + std::string(5 << 20, 'x') + "\nafter\n");
  LogQuery query = log_query(From::kTail, 0, 3);
  LogPage page = read(query);
  REQUIRE(page.lines.size() == 3);
  CHECK(page.lines[1].text == std::string(16 << 10, 'x'));
  CHECK(page.lines[1].size == 5 << 20);
  CHECK(page.lines[1].skipped == 0);
  CHECK(page.lines[2].text == "after");
  CHECK(page.lines[2].number == 2);
  page = read(From::kOffset, 3 << 20, 2);
  REQUIRE(page.lines.size() == 2);
  CHECK(page.lines[0].offset == 7);
  CHECK(page.lines[1].text == "after");
}

TEST_CASE_FIXTURE(BrowseTest, "of a long progress bar the newest states are given") {
  std::string bar;
  for (int i = 0; i < 100'000; ++i)
    bar += "\rstep " + std::to_string(i);
  write_file(path, "start\n" + bar);
  LogPage page = tail(2);
  REQUIRE(page.lines.size() == 2);
  const LogLine& line = page.lines[1];
  CHECK(line.text.size() <= (16 << 10));
  CHECK(line.text.substr(line.text.size() - 10) == "step 99999");
  CHECK(line.text.substr(0, 5) == "step ");
  CHECK(line.skipped + static_cast<int64_t>(line.text.size()) == line.size);
}

TEST_CASE_FIXTURE(BrowseTest, "a large log has its numbers some time after it was read") {
  write_file(path, numbered_lines(0, 2'000'000));
  LogPage page = tail(1);
  REQUIRE(page.lines.size() == 1);
  CHECK(page.lines[0].number == -1);
  CHECK(page.total_lines == -1);
  page = counted_tail(1);
  CHECK(page.total_lines == 2'000'000);
  CHECK(page.lines[0].number == 1'999'999);
}

TEST_CASE_FIXTURE(BrowseTest, "a log that was emptied is read anew") {
  write_file(path, numbered_lines(0, 1'000));
  CHECK(tail(1).total_lines == 1'000);
  write_file(path, "new\n");
  LogPage page = tail(10);
  CHECK(texts(page) == Texts{"new"});
  CHECK(page.total_lines == 1);
  CHECK(page.lines[0].number == 0);
  CHECK(read(From::kOffset, 15'000, 5).lines.empty());
}

TEST_CASE_FIXTURE(BrowseTest, "what is not a file is an error and does not hang") {
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  Result<LogPage> page = try_read(log_query(From::kTail, 0, 1));
  REQUIRE_FALSE(page.has_value());
  CHECK(page.error().code == EINVAL);
}

TEST_CASE_FIXTURE(BrowseTest, "a dropped request is silent") {
  write_file(path, numbered_lines(0, 100));
  bool called = false;
  auto task = reader.read(path, LogQuery(), [&](Result<LogPage>) { called = true; });
  task.reset();
  CHECK(texts(tail(1)) == Texts{"line 0000000099"});
  CHECK_FALSE(called);
}

TEST_CASE_FIXTURE(BrowseTest, "raw bytes are given by offset") {
  write_file(path, "0123456789");
  std::optional<LogReader::Bytes> got;
  auto task = reader.read_bytes(path, 4, 3, [&](Result<LogReader::Bytes> bytes) { got = *bytes; });
  REQUIRE(run_until([&] { return got.has_value(); }));
  CHECK(got->bytes == "456");
  CHECK(got->offset == 4);
  CHECK(got->size == 10);
}

TEST_CASE_FIXTURE(BrowseTest, "only so many logs are remembered") {
  for (int i = 0; i < 200; ++i)
    CHECK(reader.log(dir.path + "/" + std::to_string(i)) != nullptr);
  auto kept = reader.log(dir.path + "/199");
  CHECK(kept.use_count() == 2);
  std::weak_ptr<IndexedLog> old = reader.log(dir.path + "/0");
  for (size_t i = 0; i <= LogReader::kMaxIndexes; ++i)
    reader.log(dir.path + "/more" + std::to_string(i));
  CHECK(old.expired());
}

}  // namespace muster
