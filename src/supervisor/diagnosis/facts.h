// SPDX-License-Identifier: Apache-2.0
// What diagnose() reads out of the evidence before the rules are asked. Inner header of the room.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/diagnosis/diagnose.h"
#include "supervisor/diagnosis/error_file.h"
#include "supervisor/diagnosis/last_words.h"
#include "supervisor/diagnosis/traceback.h"
#include "supervisor/diagnosis/wait_status.h"

namespace muster {

// A line that proves something: as it was written, and where it stands.
struct FoundLine {
  std::string text;
  std::string source;  // "stderr", "stdout", "error file", "kernel log", "cgroup"
  // Its place among the cleaned lines of stderr; npos if it is not from there.
  size_t at_stderr = std::string::npos;
};

struct Facts {
  const Evidence& evidence;
  WaitStatus status;
  std::vector<std::string> stderr_lines;
  std::vector<std::string> stdout_lines;
  std::optional<Traceback> traceback;  // in stderr
  std::optional<TerminateText> terminate;
  std::optional<FaultDump> fault_dump;
  std::optional<ErrorFile> error_file;
  // What the exception that ended it says: "SomeError: text", then the further lines of its text.
  // Empty if none did. `last_word_lines` are the same as they were written.
  std::vector<std::string> last_words;
  std::vector<FoundLine> last_word_lines;

  bool started() const { return evidence.spawn_errno == 0; }
  bool exited() const { return started() && status.signal == 0; }
  bool recorded() const;  // the error file says something
  // The traceback is why the process ended, not something it logged and survived.
  bool raised() const;
  // An exception of a thread or child process that was the last thing it wrote: all there is to
  // explain the exit code.
  bool raised_aside() const;
  bool recorded_exception() const;  // the error file was written for an exception
  bool recorded_crash() const;      // it holds what a handler of the signal said
  bool aborted_by_exception() const;
  bool before_any_output() const;
  bool disk_full() const { return !evidence.full_disks.empty(); }
};

Facts read_facts(const Evidence& evidence);

// The last of the lines that are not blank, "" if there is none.
std::string_view last_text_line(const std::vector<std::string>& lines);

}  // namespace muster
