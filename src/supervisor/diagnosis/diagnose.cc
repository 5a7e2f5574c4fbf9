// SPDX-License-Identifier: Apache-2.0
// Evidence is first read into Facts (facts.h), then the table decides (rules.h), and what is known
// of the kind (kinds.h) and of the way it ended makes the words.
#include "supervisor/diagnosis/diagnose.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include <algorithm>

#include "supervisor/diagnosis/evidence_lines.h"
#include "supervisor/diagnosis/facts.h"
#include "supervisor/diagnosis/kinds.h"
#include "supervisor/diagnosis/rules.h"
#include "supervisor/diagnosis/text_lines.h"

namespace muster {

namespace {

constexpr size_t kMaxMessage = 400;     // characters
constexpr size_t kMaxLine = 400;        // characters
constexpr size_t kMaxName = 40;         // of a kind of error
constexpr size_t kExcerptLines = 20;    // last lines of a stream
constexpr size_t kLinesBefore = 3;      // of an excerpt, before the line that shows it
constexpr size_t kTracebackLines = 60;  // of a traceback: its end

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  return text;
}

// Python's own exit code says nothing; another one was chosen by the program.
std::string with_code(const Facts& facts, std::string text) {
  if (facts.status.signal != 0) return describe_end(facts.status) + ": " + text;
  if (facts.status.exit_code != 1) text += ", " + describe_end(facts.status);
  return text;
}

std::string spawn_message(const Evidence& evidence) {
  if (!evidence.spawn_message.empty()) return clean_line(evidence.spawn_message);
  return std::string("could not be started: ") + strerror(evidence.spawn_errno);
}

// What a program's own handler said about the signal that then ended it.
std::string crash_message(const Facts& facts) {
  std::string text = facts.error_file->message;
  const std::string name = signal_name(facts.status.signal) + ": ";
  if (text.starts_with(name)) text.erase(0, name.size());
  return text;
}

std::string signal_message(const Facts& facts, const Finding& found) {
  std::string end = describe_end(facts.status);
  if (facts.recorded_crash()) return end + ": " + crash_message(facts);
  if (facts.aborted_by_exception() && !facts.last_words.empty()) {
    return end + ": " + facts.last_words.front();
  }
  if (found.kind == "killed") return end + ": the kernel may have run out of memory";
  if (found.kind == "oom_kill") return end + ": the kernel had run out of memory";
  if (facts.fault_dump && !facts.fault_dump->where.empty() && found.line &&
      found.line->at_stderr == facts.fault_dump->line) {
    return end + " in " + facts.fault_dump->where;
  }
  if (!found.line || found.line->source == "error file") return end;
  return end + ": " + std::string(trimmed(found.line->text));
}

std::string exit_message(const Facts& facts, const Finding& found) {
  if (facts.raised() || facts.raised_aside()) return with_code(facts, facts.traceback->summary());
  if (facts.recorded_exception()) return with_code(facts, facts.error_file->message);
  if (found.kind == "oom_kill")
    return describe_end(facts.status) + ": the kernel killed a process of it for want of memory";
  if (!facts.last_words.empty()) return with_code(facts, facts.last_words.front());
  if (found.kind != "exit_code" && found.line) {
    return with_code(facts, std::string(trimmed(found.line->text)));
  }
  std::string text = describe_end(facts.status);
  if (facts.recorded()) text += ": " + facts.error_file->message;
  return text;
}

// The user's own rule about nothing but the end: what they call it is the message.
std::string own_message(const Facts& facts, const Finding& found) {
  const std::string& what = found.reason.empty() ? found.kind : found.reason;
  return what + ", " + describe_end(facts.status);
}

std::string message_of(const Facts& facts, const Finding& found) {
  if (!facts.started()) return spawn_message(facts.evidence);
  if (found.own && !found.by_text) return own_message(facts, found);
  return facts.status.signal != 0 ? signal_message(facts, found) : exit_message(facts, found);
}

bool can_heal(const Finding& found, const Facts& facts) {
  if (found.heals) return *found.heals;
  const Heals heals = failure_kind(found.kind).heals;
  if (heals == Heals::kUnlessFirstOutput) return !facts.before_any_output();
  return heals == Heals::kYes;
}

// The last lines, or those from a little before the one that shows it if it would be missing.
std::vector<std::string> lines_around(const std::vector<std::string>& lines, size_t at) {
  std::vector<std::string> last = last_lines(lines, kExcerptLines);
  if (at >= lines.size() || at + last.size() >= lines.size()) return last;
  const size_t begin = at - std::min(at, kLinesBefore);
  const size_t end = std::min(begin + kExcerptLines, lines.size());
  return {lines.begin() + static_cast<std::ptrdiff_t>(begin),
          lines.begin() + static_cast<std::ptrdiff_t>(end)};
}

void take_excerpt(const Facts& facts, const Finding& found, event::FailureFound& failure) {
  if (!facts.started()) return;
  auto take = [&](std::vector<std::string> lines, const char* source) {
    failure.excerpt = std::move(lines);
    failure.excerpt_source = failure.excerpt.empty() ? "" : source;
  };
  if (facts.raised() || facts.raised_aside()) {
    return take(last_lines(facts.traceback->lines, kTracebackLines), "stderr");
  }
  if (facts.recorded_exception() || facts.recorded_crash()) {
    return take(last_lines(facts.error_file->callstack, kTracebackLines), "error file");
  }
  const size_t at = found.line ? found.line->at_stderr : std::string::npos;
  take(lines_around(facts.stderr_lines, at), "stderr");
  if (failure.excerpt.empty()) take(last_lines(facts.stdout_lines, kExcerptLines), "stdout");
}

void add_note(std::string& note, std::string_view text) {
  if (text.empty()) return;
  if (!note.empty()) note += "; ";
  note += text;
}

// A hint that is short enough to stand beside the message.
std::string_view short_hint(const Facts& facts, std::string_view kind) {
  if (kind == "exec_not_found" && !facts.started())
    return "if the file is there, the interpreter or loader that it names is missing";
  if (kind == "exec_denied") return "is it executable, and may it be executed on that file system?";
  if (kind == "exec_bad_format")
    return "a script needs a #! line; a binary must be built for this machine";
  if (kind == "bus_error") return "often a full /dev/shm or a mapped file that became shorter";
  if (kind == "illegal_instruction") return "was it built for another processor?";
  if (kind == "terminated" || kind == "hangup" || kind == "interrupted")
    return "the signal did not come from muster";
  return {};
}

void add_earlier(const Facts& facts, std::string& note) {
  const std::optional<Traceback>& traceback = facts.traceback;
  if (!traceback) return;
  if (!facts.raised() && !facts.raised_aside()) {
    add_note(note, "earlier on stderr: " + traceback->summary());
  } else if (!traceback->cause.empty()) {
    add_note(note, "it began with " + traceback->cause);
  }
}

std::string make_note(const Facts& facts, const Finding& found) {
  std::string note;
  if (facts.error_file && facts.error_file->form == ErrorFile::Form::kUnreadable) {
    add_note(note, "error file unreadable: " + facts.error_file->problem);
  } else if (facts.recorded() && facts.status.signal != 0 && !facts.recorded_crash()) {
    add_note(note, "it had recorded: " + facts.error_file->message);
  }
  if (found.by_text) add_note(note, found.reason);
  add_note(note, found.hint);
  add_note(note, short_hint(facts, found.kind));
  add_earlier(facts, note);
  const int code = facts.status.exit_code;
  if (facts.exited() && !facts.raised() && code > 128 && code <= 128 + SIGRTMAX) {
    add_note(note, "a shell exits with " + std::to_string(code) + " when its command dies of " +
                       signal_name(code - 128));
  }
  return cut_line(note, kMaxMessage);
}

int failure_exit_code(const Facts& facts, std::string_view kind) {
  if (facts.started()) return facts.status.exit_code;
  // As shells have it: not there is 127, there but of no use 126.
  return kind == "exec_not_found" ? 127 : 126;
}

}  // namespace

event::FailureFound diagnose(const Evidence& evidence) {
  const Facts facts = read_facts(evidence);
  const Finding found = find_kind(facts);
  event::FailureFound failure;
  failure.attempt = evidence.attempt;
  failure.rank = evidence.rank;
  failure.local_rank = evidence.local_rank;
  failure.pid = evidence.pid;
  failure.kind = found.kind;
  failure.signal = facts.started() ? facts.status.signal : 0;
  failure.exit_code = failure_exit_code(facts, found.kind);
  failure.message = cut_line(message_of(facts, found), kMaxMessage);
  if (found.line) {
    failure.line = cut_line(found.line->text, kMaxLine);
    failure.line_source = found.line->source;
  }
  take_excerpt(facts, found, failure);
  failure.evidence = evidence_lines(evidence, found.kind);
  failure.note = make_note(facts, found);
  failure.victim = found.victim;
  failure.blames = found.blames;
  if (facts.error_file) failure.comm_error = cut_line(facts.error_file->comm_error, kMaxName);
  if (failure.comm_error.empty() && evidence.broken_operation) {
    failure.comm_error = "operation_failed";
  }
  failure.can_heal = can_heal(found, facts);
  return failure;
}

}  // namespace muster
