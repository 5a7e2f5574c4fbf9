// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "supervisor/job/event.h"

namespace muster {

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
  std::string stdout_tail;  // last 64 KiB
  std::string stderr_tail;
  std::string error_file;  // path, "" if there is none
  bool error_file_present = false;
  std::string error_file_text;
};

// Judges one worker: kind, one-line message, excerpt, whether a restart may help. Never throws and
// never fails: unreadable evidence becomes a note.
event::FailureFound diagnose(const Evidence& evidence);

// True if a worker that ended like this is a victim of our own stop rather than a cause: it was
// signalled by us and then ended by that signal or with an exit code of its own.
bool is_victim(const Evidence& evidence);

}  // namespace muster
