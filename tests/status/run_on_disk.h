// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "diagnosis/run_program.h"
#include "job/job_story.h"
#include "loop/unique_fd.h"
#include "supervisor/job/event_json.h"
#include "supervisor/logs/retention.h"

namespace muster {

// The folder of a run as a muster leaves it, and lives in it while `lock` is held.
struct RunOnDisk {
  TestFolder folder;
  UniqueFd lock;
  std::string dir = folder.file("4f1c_abcdefgh");
  std::string events = dir + "/events.jsonl";

  RunOnDisk() {
    folder.write("4f1c_abcdefgh/events.jsonl", "");
    folder.write(std::string("4f1c_abcdefgh/") + kRunLockFile, "");
  }

  // As old as the story says that the run is, so that the folder is not taken for a copy.
  void made_at(int64_t unix_seconds) const {
    set_time(dir + "/" + kRunLockFile, unix_seconds);
    set_time(events, unix_seconds);
  }

  static void set_time(const std::string& path, int64_t unix_seconds) {
    timespec times[2] = {{unix_seconds, 0}, {unix_seconds, 0}};
    REQUIRE(utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
  }

  void live() {
    lock.reset(open((dir + "/" + kRunLockFile).c_str(), O_WRONLY | O_CLOEXEC));
    REQUIRE(flock(lock.get(), LOCK_EX) == 0);
  }
  void die() { lock.reset(); }

  void append(std::string_view text) const {
    std::ofstream(events, std::ios::binary | std::ios::app) << text;
  }
  void append(const Event& event) const { append(event_to_json(event) + "\n"); }
  void append(const JobStory& story, size_t from = 0) const {
    for (size_t i = from; i < story.events.size(); ++i)
      append(story.events[i]);
  }
};

}  // namespace muster
