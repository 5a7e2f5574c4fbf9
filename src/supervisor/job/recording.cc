// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/recording.h"

#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <utility>

#include "loop/pool.h"

namespace muster {

std::string recording_beside(const std::string& error_file) {
  if (error_file.empty()) return "";
  return error_file.substr(0, error_file.rfind('/') + 1) + "flight_recorder_";
}

std::string dump_of(const std::string& error_file, int rank) {
  return error_file.empty() ? "" : recording_beside(error_file) + std::to_string(rank);
}

bool is_python(const std::string& executable) {
  return std::string_view(executable).substr(executable.rfind('/') + 1).starts_with("python");
}

bool can_hold_pipes(const std::string& recording) {
  if (recording.empty()) return false;
  // No rank's is longer.
  const std::string pipe = recording + std::to_string(INT_MAX) + std::string(kRecordingPipe);
  return ::mkfifo(pipe.c_str(), 0600) == 0 && ::unlink(pipe.c_str()) == 0;
}

void remove_recording_pipes(Loop& loop, std::vector<std::string> dumps) {
  run_in_pool(
      loop,
      [dumps = std::move(dumps)] {
        for (const std::string& dump : dumps)
          ::unlink((dump + std::string(kRecordingPipe)).c_str());
      },
      [] {});
}

}  // namespace muster
