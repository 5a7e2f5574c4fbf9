// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "supervisor/diagnosis/diagnose.h"

namespace muster {

// A folder that workers write to.
struct Folder {
  std::string path;
  std::string name;  // what it is to them: "TMPDIR", "logs"; may be empty
};

// Those without room, one for each file system. Blocks as long as a file system does; `asking` says
// which of `folders` is being looked at (others may read it), and is their number at the end.
std::vector<FullDisk> full_disks(const std::vector<Folder>& folders, std::atomic<size_t>& asking);

// "/tmp (TMPDIR)".
std::string folder_words(const Folder& folder);

}  // namespace muster
