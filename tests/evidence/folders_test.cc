// SPDX-License-Identifier: Apache-2.0
#include "supervisor/evidence/folders.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include "diagnosis/run_program.h"
#include "skip.h"

namespace muster {

namespace {

std::vector<FullDisk> full_among(const std::vector<Folder>& folders) {
  std::atomic<size_t> asking{99};
  std::vector<FullDisk> full = full_disks(folders, asking);
  CHECK(asking == folders.size());
  return full;
}

// A small file system of a test's own.
struct Disk {
  TestFolder folder;
  bool mounted = false;
  explicit Disk(const char* options) {
    mounted = mount("none", folder.path().c_str(), "tmpfs", 0, options) == 0;
    if (!mounted) say_skipped("no file system can be mounted");
  }
  ~Disk() {
    if (mounted) umount2(folder.path().c_str(), MNT_DETACH);
  }
  void fill() const {
    const int fd = open(folder.file("big").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE(fd >= 0);
    const std::string block(4096, 'x');
    while (write(fd, block.data(), block.size()) > 0) {
    }
    close(fd);
  }
};

}  // namespace

TEST_CASE("a file system without room is named once, by the folder that lies there") {
  Disk disk("size=1m");
  if (!disk.mounted) return;
  const std::string& path = disk.folder.path();
  CHECK(full_among({{path, "TMPDIR"}}).empty());
  disk.fill();
  const std::vector<FullDisk> full = full_among({{"/", ""}, {path, "TMPDIR"}, {path, "HOME"}});
  REQUIRE(full.size() == 1);
  CHECK(full[0].path == path + " (TMPDIR)");
  CHECK(full[0].free_bytes == 0);
}

TEST_CASE("a file system without inodes is full too") {
  Disk disk("size=64m,nr_inodes=3");
  if (!disk.mounted) return;
  (void)disk.folder.write("a", "");
  CHECK(full_among({{disk.folder.path(), ""}}).empty());
  (void)disk.folder.write("b", "");
  const std::vector<FullDisk> full = full_among({{disk.folder.path(), ""}});
  REQUIRE(full.size() == 1);
  CHECK(full[0].path == disk.folder.path());
  CHECK(full[0].free_files == 0);
}

TEST_CASE("folders that are not there are passed over") {
  CHECK(full_among({{"", "HOME"}, {"/nonexistent", "TMPDIR"}, {"/proc", ""}}).empty());
  CHECK(full_among({}).empty());
}

}  // namespace muster
