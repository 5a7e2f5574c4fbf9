// SPDX-License-Identifier: Apache-2.0
#include "supervisor/sampling/told_progress.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

using namespace muster;

namespace {

struct ToldFile {
  UniqueFd fd{::memfd_create("progress", MFD_CLOEXEC)};

  ToldProgress write(std::string_view text) {
    REQUIRE(::ftruncate(fd.get(), 0) == 0);
    REQUIRE(::pwrite(fd.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
    return read_told_progress(fd);
  }
};

}  // namespace

TEST_CASE("a number is a step, with its total or without") {
  CHECK(parse_told_progress("812").step == 812);
  CHECK(parse_told_progress(" 812/1000\n").step == 812);
  CHECK(parse_told_progress(" 812/1000\n").steps == 1000);
}

TEST_CASE("it may be a line as programs print them, or JSON as in the store") {
  CHECK(parse_told_progress("step 7/9 loss: 0.5").step == 7);
  CHECK(parse_told_progress("step 7/9 loss: 0.5").loss == 0.5);
  CHECK(parse_told_progress(R"({"step": 5, "loss": 2})").step == 5);
}

TEST_CASE("of several lines the last one counts") {
  CHECK(parse_told_progress("1\n2\n3\n").step == 3);
}

TEST_CASE("what says nothing is no error") {
  CHECK_FALSE(parse_told_progress("").any());
  CHECK_FALSE(parse_told_progress("\n \n").any());
  CHECK_FALSE(parse_told_progress("{").any());
  CHECK_FALSE(parse_told_progress(std::string(5'000, '\xff')).any());
}

TEST_CASE("a file that nobody has written has no time") {
  const ToldFile file;
  CHECK(read_told_progress(file.fd).time_us == 0);
}

TEST_CASE("what was written is read with its time, of a long file the end") {
  ToldFile file;
  const ToldProgress first = file.write("step 3");
  CHECK(first.progress.step == 3);
  CHECK(first.time_us > 1'700'000'000'000'000);
  std::string lines;
  for (int step = 0; step <= 1'000; ++step)
    lines += "step " + std::to_string(step) + "\n";
  const ToldProgress last = file.write(lines);
  CHECK(last.progress.step == 1'000);
  CHECK(last.time_us >= first.time_us);
}

TEST_CASE("what a worker appends for weeks is given back, but for its end") {
  ToldFile file;
  std::string lines(size_t{1} << 20, 'x');
  lines += "\nstep 7\n";
  CHECK(file.write(lines).progress.step == 7);
  struct stat info {};
  REQUIRE(::fstat(file.fd.get(), &info) == 0);
  CHECK(info.st_size == static_cast<off_t>(lines.size()));
  CHECK(info.st_blocks * 512 <= 16 * 1024);
  // It goes on where it was, and is read as before.
  REQUIRE(::pwrite(file.fd.get(), "step 8\n", 7, info.st_size) == 7);
  CHECK(read_told_progress(file.fd).progress.step == 8);
}
