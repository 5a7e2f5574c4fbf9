// SPDX-License-Identifier: Apache-2.0
#include "supervisor/evidence/folders.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <set>

namespace muster {

namespace {

// Less than this is no room: programs write in pieces of megabytes, and clean up when they fail.
// Of a small file system it is a fiftieth.
constexpr uint64_t kRoom = 16 << 20;
constexpr uint64_t kSmallPart = 50;

}  // namespace

std::string folder_words(const Folder& folder) {
  return folder.name.empty() ? folder.path : folder.path + " (" + folder.name + ")";
}

std::vector<FullDisk> full_disks(const std::vector<Folder>& folders, std::atomic<size_t>& asking) {
  std::vector<FullDisk> full;
  std::set<dev_t> seen;
  for (size_t i = 0; i < folders.size(); ++i) {
    asking = i;
    struct stat info {};
    struct statvfs room {};
    const std::string& path = folders[i].path;
    if (path.empty() || stat(path.c_str(), &info) != 0 || !seen.insert(info.st_dev).second)
      continue;
    if (statvfs(path.c_str(), &room) != 0 || room.f_blocks == 0) continue;
    const uint64_t unit = room.f_frsize;
    const bool no_room = room.f_bavail * unit < std::min(kRoom, room.f_blocks * unit / kSmallPart);
    // Some file systems make inodes as they need them, and have none to count.
    const bool no_files = room.f_files > 0 && room.f_favail == 0;
    const bool read_only = (room.f_flag & ST_RDONLY) != 0;
    if (read_only || (!no_room && !no_files)) continue;
    full.push_back({folder_words(folders[i]), static_cast<int64_t>(room.f_bavail * unit),
                    room.f_files > 0 ? static_cast<int64_t>(room.f_favail) : -1});
  }
  asking = folders.size();
  return full;
}

}  // namespace muster
