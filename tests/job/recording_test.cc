// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/recording.h"

#include <doctest/doctest.h>

#include <climits>
#include <filesystem>

#include "logs/temp_dir.h"

using namespace muster;

TEST_CASE("a dump lies beside the error file, if there is one") {
  CHECK(recording_beside("/logs/0/error.json") == "/logs/0/flight_recorder_");
  CHECK(dump_of("/logs/0/error.json", 12) == "/logs/0/flight_recorder_12");
  CHECK(recording_beside("") == "");
  CHECK(dump_of("", 12) == "");
}

TEST_CASE("only what is Python itself is told to make a pipe") {
  CHECK(is_python("/usr/bin/python3.11"));
  CHECK(is_python("python"));
  CHECK_FALSE(is_python("/usr/bin/apptainer"));
  CHECK_FALSE(is_python("/opt/python/train.sh"));
}

TEST_CASE("a folder is tried, and left as it was") {
  TempDir dir;
  CHECK(can_hold_pipes(dir.path + "/flight_recorder_"));
  CHECK(std::filesystem::is_empty(dir.path));
  CHECK_FALSE(can_hold_pipes(dir.path + "/none/flight_recorder_"));
  CHECK_FALSE(can_hold_pipes(""));
}

TEST_CASE("a path whose pipes would be too long for some rank holds none") {
  TempDir dir;
  std::string folder = dir.path;
  while (folder.size() + 201 < PATH_MAX - 40)
    folder += "/" + std::string(200, 'x');
  std::filesystem::create_directories(folder);
  CHECK(can_hold_pipes(folder + "/flight_recorder_"));
  folder += "/" + std::string(PATH_MAX - 30 - folder.size(), 'x');
  std::filesystem::create_directories(folder);
  CHECK_FALSE(can_hold_pipes(folder + "/flight_recorder_"));
}
