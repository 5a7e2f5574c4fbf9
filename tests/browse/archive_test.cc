// SPDX-License-Identifier: Apache-2.0
#include "supervisor/browse/archive.h"

#include <doctest/doctest.h>

#include <cstdlib>

#include "browse/browse_fixture.h"
#include "supervisor/browse/tar.h"
#include "supervisor/logs/log_file.h"

namespace muster {

namespace {

struct ArchiveTest : BrowseTest {
  std::string packed;
  std::unique_ptr<LogArchive> archive =
      LogArchive::start(reader.gate(), [this](std::string piece) { packed += piece; });

  std::string add(const std::string& name, const std::string& text) {
    const std::string at = dir.path + "/" + name;
    std::ofstream(at, std::ios::binary) << text;
    return at;
  }

  // What the system's own tar makes of it.
  std::string unpack() {
    archive->finish();
    REQUIRE(run_until([&] { return archive->finished(); }));
    const std::string file = add("packed.tar.gz", packed);
    const std::string out = dir.path + "/out";
    const std::string command =
        "mkdir " + out + " && tar -xzf " + file + " -C " + out + " 2>" + dir.path + "/trouble";
    CHECK(std::system(command.c_str()) == 0);
    CHECK(file_text(dir.path + "/trouble").empty());
    return out;
  }

  static std::string file_text(const std::string& at) {
    std::ifstream in(at, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

}  // namespace

TEST_SUITE("archive") {
  TEST_CASE_FIXTURE(ArchiveTest, "tar unpacks what was packed") {
    const std::string big = numbered_lines(0, 300'000);
    archive->add_log("attempt_0/rank_0/stdout.log", add("a.log", big));
    archive->add_log("attempt_0/rank_1/stdout.log", add("b.log", "short\n"));
    archive->add_log("attempt_0/rank_2/stdout.log", dir.path + "/none.log");
    archive->add_log("attempt_0/rank_3/stdout.log", add("c.log", ""));
    const std::string out = unpack();
    CHECK(file_text(out + "/attempt_0/rank_0/stdout.log") == big);
    CHECK(file_text(out + "/attempt_0/rank_1/stdout.log") == "short\n");
    CHECK_FALSE(std::ifstream(out + "/attempt_0/rank_2/stdout.log").is_open());
    CHECK(std::ifstream(out + "/attempt_0/rank_3/stdout.log").is_open());
    CHECK(packed.size() < big.size());
    CHECK(archive->troubles().empty());
  }

  TEST_CASE_FIXTURE(ArchiveTest, "an archive of nothing is one") {
    unpack();
  }

  TEST_CASE_FIXTURE(ArchiveTest, "bytes that come from elsewhere are a file like others") {
    archive->begin_file("attempt_0/rank_9/stderr.log", 11, 1'790'000'000);
    archive->add_bytes("hello ");
    archive->add_bytes("world");
    archive->add_bytes("more than was said");
    archive->end_file();
    archive->begin_file("half.log", 1'000, 1'790'000'000);
    archive->add_bytes("half");
    archive->end_file();
    archive->add_log("last.log", add("a.log", "last\n"));
    const std::string out = unpack();
    CHECK(file_text(out + "/attempt_0/rank_9/stderr.log") == "hello world");
    CHECK(file_text(out + "/half.log") == "half" + std::string(996, '\0'));
    CHECK(file_text(out + "/last.log") == "last\n");
    REQUIRE(archive->troubles().size() == 1);
    CHECK(archive->troubles()[0].find("half.log: its last 996 bytes") == 0);
  }

  TEST_CASE_FIXTURE(ArchiveTest, "names and sizes beyond those of old tars are kept") {
    std::string name;
    for (int i = 0; i < 20; ++i)
      name += "folder_" + std::to_string(i) + "/";
    archive->begin_file(name + "x", 1, 0);
    archive->add_bytes("x");
    archive->end_file();
    CHECK(file_text(unpack() + "/" + name + "x") == "x");
    const std::string header = tar_header("a", int64_t{10} << 30, 0);
    CHECK(header.size() == 3 * 512);
    CHECK(header.find("20 size=10737418240\n") == 512);
  }

  TEST_CASE_FIXTURE(ArchiveTest, "a log that is written meanwhile is packed as it was") {
    const std::string at = add("a.log", numbered_lines(0, 200'000));
    archive->add_log("a.log", at);
    REQUIRE(run_until([&] { return !packed.empty(); }));
    std::ofstream(at, std::ios::app) << "more\n";
    CHECK(file_text(unpack() + "/a.log") == numbered_lines(0, 200'000));
  }

  TEST_CASE_FIXTURE(ArchiveTest, "a log that loses bytes meanwhile still is a whole file") {
    const std::string at = add("a.log", numbered_lines(0, 500'000));
    archive->add_log("a.log", at);
    REQUIRE(run_until([&] { return !packed.empty(); }));
    std::ofstream(at, std::ios::trunc);
    const std::string text = file_text(unpack() + "/a.log");
    CHECK(std::ssize(text) == std::ssize(numbered_lines(0, 500'000)));
    CHECK(text.substr(0, 100) == numbered_lines(0, 10).substr(0, 100));
    CHECK(archive->troubles().size() == 1);
  }

  TEST_CASE_FIXTURE(ArchiveTest, "what a bounded log left out is said where it was") {
    auto file = LogFile::create_later(path, LogFile::kMinLimit);
    file->keep_times(times_path(path));
    for (int64_t i = 0; i < 20'000; i += 100)
      CHECK(file->append(numbered_lines(i, i + 100), 1'790'000'000'000'000 + i).error == 0);
    file->finish();
    archive->add_log("a.log", path);
    const std::string text = file_text(unpack() + "/a.log");
    CHECK(text.find(numbered_line(0)) == 0);
    CHECK(text.find(" bytes were left out here]\n") != std::string::npos);
    CHECK(text.substr(text.size() - numbered_line(0).size()) == numbered_line(19'999));
    CHECK(archive->troubles().empty());
  }

  TEST_CASE_FIXTURE(ArchiveTest, "while it is paused nothing is packed") {
    archive->add_log("a.log", add("a.log", numbered_lines(0, 500'000)));
    REQUIRE(run_until([&] { return !packed.empty(); }));
    archive->set_paused(true);
    run_until([&] { return !loop.has_requests(); });
    const int64_t pieces = reader.gate().pieces();
    loop.run_until([] { return false; }, Milliseconds(20));
    CHECK(reader.gate().pieces() <= pieces + 1);
    archive->set_paused(false);
    CHECK(file_text(unpack() + "/a.log") == numbered_lines(0, 500'000));
  }

  TEST_CASE_FIXTURE(ArchiveTest, "a dropped archive is silent") {
    archive->add_log("a.log", add("a.log", numbered_lines(0, 500'000)));
    REQUIRE(run_until([&] { return reader.gate().pieces() > 0; }));
    archive.reset();
    const size_t size = packed.size();
    run_until([&] { return !loop.has_requests(); });
    CHECK(packed.size() == size);
  }
}

}  // namespace muster
