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
  LogArchive::State state;
  std::vector<ArchiveEntry> entries;
  std::unique_ptr<LogArchive> archive;

  std::string write(const std::string& name, const std::string& text) {
    const std::string at = dir.path + "/" + name;
    std::ofstream(at, std::ios::binary) << text;
    return at;
  }
  std::string add(const std::string& name, const std::string& text) {
    const std::string at = write("log_" + std::to_string(entries.size()), text);
    entries.push_back({name, at});
    return at;
  }

  void start() {
    archive = LogArchive::start(reader.gate(), std::exchange(entries, {}),
                                [this](std::string piece, const LogArchive::State& now) {
                                  packed += piece;
                                  state = now;
                                });
  }
  void pack() {
    state = {};
    start();
    REQUIRE(run_until([&] { return state.done; }));
  }

  // What the system's own tar makes of it.
  std::string unpack() {
    REQUIRE(run_until([&] { return state.done; }));
    const std::string file =
        write("packed.tar.gz", packed + archive_end(state.troubles, 1'790'000'000));
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
    add("attempt_0/rank_0/stdout.log", big);
    add("attempt_0/rank_1/stdout.log", "short\n");
    entries.push_back({"attempt_0/rank_2/stdout.log", dir.path + "/none.log"});
    add("attempt_0/rank_3/stdout.log", "");
    pack();
    const std::string out = unpack();
    CHECK(file_text(out + "/attempt_0/rank_0/stdout.log") == big);
    CHECK(file_text(out + "/attempt_0/rank_1/stdout.log") == "short\n");
    CHECK_FALSE(std::ifstream(out + "/attempt_0/rank_2/stdout.log").is_open());
    CHECK(std::ifstream(out + "/attempt_0/rank_3/stdout.log").is_open());
    CHECK_FALSE(std::ifstream(out + "/muster-notes.txt").is_open());
    CHECK(packed.size() < big.size());
  }

  TEST_CASE_FIXTURE(ArchiveTest, "an archive of nothing is one") {
    pack();
    unpack();
  }

  TEST_CASE_FIXTURE(ArchiveTest, "parts that were packed apart are one archive") {
    add("a.log", "one\n");
    pack();
    add("b.log", "two\n");
    pack();
    const std::string out = unpack();
    CHECK(file_text(out + "/a.log") == "one\n");
    CHECK(file_text(out + "/b.log") == "two\n");
  }

  TEST_CASE_FIXTURE(ArchiveTest, "a log that cannot be read is named in a note") {
    entries.push_back({"a.log", dir.path});
    add("b.log", "two\n");
    pack();
    const std::string out = unpack();
    CHECK(file_text(out + "/b.log") == "two\n");
    CHECK(file_text(out + "/muster-notes.txt").find("a.log: ") == 0);
  }

  TEST_CASE_FIXTURE(ArchiveTest, "names and sizes beyond those of old tars are kept") {
    std::string name;
    for (int i = 0; i < 20; ++i)
      name += "folder_" + std::to_string(i) + "/";
    add(name + "x", "x");
    pack();
    CHECK(file_text(unpack() + "/" + name + "x") == "x");
    const std::string header = tar_header("a", int64_t{10} << 30, 0);
    CHECK(header.size() == 3 * 512);
    CHECK(header.find("20 size=10737418240\n") == 512);
  }

  TEST_CASE_FIXTURE(ArchiveTest, "a log that is written meanwhile is packed as it was") {
    const std::string at = add("a.log", numbered_lines(0, 200'000));
    start();
    REQUIRE(run_until([&] { return !packed.empty(); }));
    std::ofstream(at, std::ios::app) << "more\n";
    CHECK(file_text(unpack() + "/a.log") == numbered_lines(0, 200'000));
  }

  TEST_CASE_FIXTURE(ArchiveTest, "a log that loses bytes meanwhile still is a whole file") {
    const std::string at = add("a.log", numbered_lines(0, 500'000));
    start();
    REQUIRE(run_until([&] { return !packed.empty(); }));
    std::ofstream(at, std::ios::trunc).close();
    const std::string out = unpack();
    const std::string text = file_text(out + "/a.log");
    CHECK(std::ssize(text) == std::ssize(numbered_lines(0, 500'000)));
    CHECK(text.substr(0, 100) == numbered_lines(0, 10).substr(0, 100));
    CHECK(file_text(out + "/muster-notes.txt").find("a.log: its last ") == 0);
  }

  TEST_CASE_FIXTURE(ArchiveTest, "what a bounded log left out is said where it was") {
    auto file = LogFile::create_later(path, LogFile::kMinLimit);
    file->keep_times(times_path(path));
    for (int64_t i = 0; i < 20'000; i += 100)
      CHECK(file->append(numbered_lines(i, i + 100), 1'790'000'000'000'000 + i).error == 0);
    file->finish();
    entries.push_back({"a.log", path});
    pack();
    CHECK(state.troubles.empty());
    const std::string text = file_text(unpack() + "/a.log");
    CHECK(text.find(numbered_line(0)) == 0);
    CHECK(text.find(" bytes are left out here]\n") != std::string::npos);
    CHECK(text.substr(text.size() - numbered_line(0).size()) == numbered_line(19'999));
  }

  TEST_CASE_FIXTURE(ArchiveTest, "while it is paused nothing is packed") {
    add("a.log", numbered_lines(0, 500'000));
    start();
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
    add("a.log", numbered_lines(0, 500'000));
    start();
    REQUIRE(run_until([&] { return reader.gate().pieces() > 0; }));
    archive.reset();
    const size_t size = packed.size();
    run_until([&] { return !loop.has_requests(); });
    CHECK(packed.size() == size);
  }
}

}  // namespace muster
