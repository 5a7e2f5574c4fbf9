// SPDX-License-Identifier: Apache-2.0
#include "supervisor/stacks/recordings.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include <filesystem>
#include <thread>

#include "logs/temp_dir.h"

using namespace muster;

namespace {

// Does with its pipe what PyTorch does: makes it, and writes a dump when something comes.
class Recorder {
 public:
  explicit Recorder(const std::string& dump) : dump_(dump) {
    REQUIRE(::mkfifo((dump + ".pipe").c_str(), 0600) == 0);
    pipe_.reset(::open((dump + ".pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    REQUIRE(pipe_);
  }
  ~Recorder() {
    if (thread_.joinable()) thread_.join();
  }
  void answer(bool whole) {
    thread_ = std::thread([this, whole] {
      pollfd asked{pipe_.get(), POLLIN, 0};
      char byte = 0;
      if (::poll(&asked, 1, 20'000) != 1 || ::read(pipe_.get(), &byte, 1) != 1) return;
      file_.reset(::open(dump_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
      if (::write(file_.get(), "the dump", 8) != 8) return;
      if (whole) file_.reset();
    });
  }

 private:
  const std::string dump_;
  UniqueFd pipe_, file_;
  std::thread thread_;
};

struct RecordingsTest {
  TempDir dir;
  Recordings recordings;
  const std::string saved = dir.path + "/saved";

  RecordingsTest() {
    for (const char* name : {"/0", "/1", "/saved"})
      std::filesystem::create_directory(dir.path + name);
  }
  std::string dump(int rank) const {
    return dir.path + "/" + std::to_string(rank) + "/flight_recorder_" + std::to_string(rank);
  }
};

}  // namespace

TEST_CASE_FIXTURE(RecordingsTest, "ranks are asked for their dumps, which go into one folder") {
  Recorder zero(dump(0)), one(dump(1));
  zero.answer(true);
  one.answer(true);
  recordings.ask(0, dump(0));
  recordings.ask(1, dump(1));
  CHECK(recordings.collect(saved, Milliseconds(20'000)).empty());
  CHECK(read_file(saved + "/flight_recorder_0") == "the dump");
  CHECK(read_file(saved + "/flight_recorder_1") == "the dump");
  CHECK_FALSE(std::filesystem::exists(dump(0)));
}

TEST_CASE_FIXTURE(RecordingsTest, "a dump that is not whole in time stays where it is") {
  Recorder zero(dump(0)), one(dump(1));
  zero.answer(false);
  recordings.ask(0, dump(0));
  recordings.ask(1, dump(1));
  CHECK(recordings.collect(saved, Milliseconds(200)) == std::vector<int>{0, 1});
  CHECK(std::filesystem::is_empty(saved));
}

TEST_CASE_FIXTURE(RecordingsTest, "what came while nobody waited yet counts, however late it is") {
  {
    Recorder zero(dump(0));
    zero.answer(true);
    recordings.ask(0, dump(0));
  }
  CHECK(recordings.collect(saved, Milliseconds(0)).empty());
  CHECK(read_file(saved + "/flight_recorder_0") == "the dump");
}

TEST_CASE_FIXTURE(RecordingsTest, "without a pipe, or a reader of it, nobody is asked") {
  REQUIRE(::mkfifo((dump(1) + ".pipe").c_str(), 0600) == 0);
  recordings.ask(0, dump(0));
  recordings.ask(1, dump(1));
  recordings.ask(2, "");
  CHECK(recordings.collect(saved, Milliseconds(20'000)).empty());
}
