// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/address_file.h"

#include <doctest/doctest.h>

#include "status/run_on_disk.h"

namespace muster {

TEST_CASE("an address that was written is read back, and only its owner can") {
  RunOnDisk run;
  REQUIRE(write_address_file(run.dir, "http://127.0.0.1:1/?token=a"));
  REQUIRE(read_address_file(run.dir));
  CHECK(read_address_file(run.dir)->url == "http://127.0.0.1:1/?token=a");
  CHECK(read_address_file(run.dir)->host == this_host());
  struct stat info;
  REQUIRE(stat((run.dir + "/http").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  SUBCASE("a second one replaces it") {
    REQUIRE(write_address_file(run.dir, "http://127.0.0.1:2/?token=b"));
    REQUIRE(read_address_file(run.dir));
    CHECK(read_address_file(run.dir)->url == "http://127.0.0.1:2/?token=b");
    CHECK(read_address_file(run.dir)->host == this_host());
  }
  SUBCASE("it can be removed, twice") {
    remove_address_file(run.dir);
    remove_address_file(run.dir);
    CHECK_FALSE(read_address_file(run.dir));
    CHECK_FALSE(std::filesystem::exists(run.dir + "/http.new"));
  }
}

TEST_CASE("an address cannot be written where there is no folder") {
  TestFolder folder;
  Result<void> written = write_address_file(folder.file("gone"), "http://x/");
  REQUIRE_FALSE(written);
  CHECK(written.error().message.find("gone/http.new: No such file") != std::string::npos);
}

TEST_CASE("what is no address file is none: half a line, a folder, a pipe") {
  RunOnDisk run;
  std::filesystem::path path = run.dir + "/http";
  SUBCASE("half") {
    std::ofstream(path) << "http://127.0.0.1:1/?tok";
  }
  SUBCASE("empty") {
    std::ofstream(path) << "\n";
  }
  SUBCASE("a folder") {
    std::filesystem::create_directory(path);
  }
  SUBCASE("a pipe, which would block") {
    REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  }
  CHECK_FALSE(read_address_file(run.dir));
}

TEST_CASE("a run lives while its lock is held") {
  RunOnDisk run;
  CHECK_FALSE(run_lives(run.dir));
  run.live();
  CHECK(run_lives(run.dir));
  CHECK(run_lives(run.dir));
  run.die();
  CHECK_FALSE(run_lives(run.dir));
  CHECK_FALSE(run_lives(run.folder.path()));
}

}  // namespace muster
