// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/job/event.h"

namespace muster {

struct FailureRules;

// How much of a worker's output is looked at, per stream.
inline constexpr size_t kTailBytes = 64 * 1024;

// Memory ran out around a worker.
struct MemoryTrouble {
  std::string cgroup;       // whose limit it was, "" for the whole machine
  int64_t oom_kills = 0;    // that were counted since the worker was started
  int64_t limit_bytes = 0;  // 0: none, or unknown
};

struct FullDisk {
  std::string path;  // the folder of the worker that lies there
  int64_t free_bytes = 0;
  int64_t free_files = -1;  // inodes; -1: the file system has no such limit
};

// A line of a worker's output, as it was written.
struct OutputLine {
  Stream stream = Stream::kStdout;
  std::string text;
};

// What is known about one dead (or never started) worker when the attempt is judged. Gathered by
// the job, so that judging is pure.
struct Evidence {
  int attempt = 0;
  int rank = 0;
  int local_rank = 0;
  int pid = 0;
  int wait_status = 0;
  int spawn_errno = 0;  // not 0: execve or what came before it failed
  std::string spawn_message;
  StopReason stopped_for = StopReason::kNone;  // we signalled it before it ended
  int stop_signal = 0;
  bool wrote_output = false;
  std::string stdout_tail;  // last kTailBytes
  std::string stderr_tail;
  std::vector<OutputLine> last_lines;  // of both, in the order in which they came; empty: unknown
  std::string error_file;              // path, "" if there is none
  bool error_file_present = false;
  std::string error_file_text;
  bool broken_operation = false;  // the last that its page shows had failed
  int64_t max_rss_kib = 0;        // the most memory it had
  // Of its cgroup and those above it, while it ran (evidence/memory_watch.h).
  std::optional<MemoryTrouble> memory;
  std::vector<std::string> kernel_lines;  // of the kernel's log, about it: OOM, segfault, Xid
  std::vector<FullDisk> full_disks;       // file systems of its folders without room
  std::string silent_folder;  // one of them whose file system did not answer, "/home/x (HOME)"
  std::string core;           // the dump of its memory: a path, or how to get it
  std::string gpu;            // its GPU's place, "0000:17:00.0"
  std::string gpu_trouble;    // what is wrong with that GPU, a line
  std::string recording;      // the file that PyTorch's flight recorder left, "" if there is none
  std::string store_wait;     // the key that it waited for in the store when it ended, "" if none
  const FailureRules* own_rules = nullptr;  // of --failure-rules; they outlive the evidence
};

// Stands in event::FailureFound::evidence before the last lines of both streams, which are the last
// of it, as "stdout: text" and "stderr: text".
inline constexpr std::string_view kLastLinesHeading =
    "last lines of both streams, in the order in which they came:";

// Judges one worker: kind, one-line message, the line that shows it, excerpt, whether it is what
// another's failure does to a rank, whether a restart may help. Never throws and never fails:
// unreadable evidence becomes a note.
event::FailureFound diagnose(const Evidence& evidence);

}  // namespace muster
