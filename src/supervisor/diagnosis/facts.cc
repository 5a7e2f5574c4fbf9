// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/facts.h"

#include <signal.h>

#include <algorithm>

#include "supervisor/diagnosis/text_lines.h"

namespace muster {

namespace {

// An exception that ends a process is the last thing it prints, but for destructors and atexit.
constexpr size_t kMaxLinesAfterTraceback = 40;
constexpr size_t kMaxLinesAfterTerminate = 10;
constexpr size_t kMaxLastWords = 16;  // lines

void add_words(Facts& facts, std::string words, std::string line, const char* source,
               size_t at_stderr = std::string::npos) {
  if (facts.last_words.size() >= kMaxLastWords) return;
  facts.last_words.push_back(std::move(words));
  facts.last_word_lines.push_back({std::move(line), source, at_stderr});
}

void read_raised(Facts& facts) {
  const Traceback& found = *facts.traceback;
  const std::vector<std::string>& lines = found.lines;
  const std::string first = found.message.empty() ? found.type : found.type + ": " + found.message;
  for (size_t i = found.said; i < lines.size(); ++i)
    add_words(facts, i == found.said ? first : lines[i], lines[i], "stderr");
}

void read_terminated(Facts& facts) {
  const TerminateText& found = *facts.terminate;
  for (size_t i = found.line; i < found.end; ++i) {
    const std::string& line = facts.stderr_lines[i];
    add_words(facts, i == found.line ? found.summary() : line, line, "stderr", i);
  }
}

void read_last_words(Facts& facts) {
  if (facts.raised() || facts.raised_aside()) return read_raised(facts);
  if (facts.recorded_exception()) {
    return add_words(facts, facts.error_file->message, facts.error_file->message, "error file");
  }
  if (facts.aborted_by_exception()) read_terminated(facts);
}

}  // namespace

bool Facts::recorded() const {
  return error_file && error_file->form != ErrorFile::Form::kUnreadable &&
         !error_file->message.empty();
}

// Python exits with 1; a program that catches, prints and exits with its own code prints it last.
bool Facts::raised() const {
  if (!exited() || !traceback || traceback->aside) return false;
  return status.exit_code == 1 ? traceback->lines_after <= kMaxLinesAfterTraceback
                               : traceback->lines_after == 0;
}

bool Facts::raised_aside() const {
  return exited() && traceback && traceback->aside && !traceback->ignored &&
         traceback->lines_after == 0 && !recorded();
}

bool Facts::recorded_exception() const {
  return exited() && recorded() && error_file->form == ErrorFile::Form::kFull &&
         !error_file->callstack.empty();
}

bool Facts::recorded_crash() const {
  return started() && status.signal != 0 && recorded() && error_file->native();
}

// A child's may stand there too: one that ended by an exit code of its own prints it last.
bool Facts::aborted_by_exception() const {
  if (!started() || !terminate) return false;
  return status.exit_code == 128 + SIGABRT ||
         (exited() && status.exit_code != 0 &&
          stderr_lines.size() - terminate->end <= kMaxLinesAfterTerminate);
}

bool Facts::before_any_output() const {
  const bool whole = evidence.stderr_tail.size() < kTailBytes;
  if (!whole || !evidence.stdout_tail.empty()) return false;
  return !traceback || traceback->lines_before == 0;
}

std::string_view last_text_line(const std::vector<std::string>& lines) {
  auto last = std::find_if(lines.rbegin(), lines.rend(),
                           [](const std::string& line) { return !is_blank(line); });
  return last == lines.rend() ? std::string_view() : std::string_view(*last);
}

Facts read_facts(const Evidence& evidence) {
  Facts facts{evidence,
              decode_wait_status(evidence.wait_status),
              clean_lines(evidence.stderr_tail),
              clean_lines(evidence.stdout_tail),
              std::nullopt,
              std::nullopt,
              std::nullopt,
              std::nullopt,
              {},
              {}};
  facts.traceback = find_traceback(facts.stderr_lines);
  facts.terminate = find_terminate(facts.stderr_lines);
  facts.fault_dump = find_fault_dump(facts.stderr_lines);
  if (evidence.error_file_present) facts.error_file = parse_error_file(evidence.error_file_text);
  read_last_words(facts);
  return facts;
}

}  // namespace muster
