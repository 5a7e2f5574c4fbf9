// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/diagnose.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include <algorithm>

#include "supervisor/diagnosis/error_file.h"
#include "supervisor/diagnosis/text_lines.h"
#include "supervisor/diagnosis/traceback.h"
#include "supervisor/diagnosis/wait_status.h"

// Evidence is first read into Facts, then one table decides: the first rule that matches gives the
// kind, the one-line message and whether a restart may heal it. A new kind is a new row.

namespace muster {

namespace {

constexpr size_t kMaxMessage = 400;     // characters
constexpr size_t kMaxName = 40;         // of a kind of error
constexpr size_t kExcerptLines = 20;    // last lines of a stream
constexpr size_t kTracebackLines = 60;  // of a traceback: its end
// An exception that ends a process is the last thing it prints, but for destructors and atexit.
constexpr size_t kMaxLinesAfterTraceback = 40;

struct Facts {
  const Evidence& evidence;
  WaitStatus status;
  std::vector<std::string> stderr_lines;
  std::vector<std::string> stdout_lines;
  std::optional<Traceback> traceback;  // in stderr
  std::optional<ErrorFile> error_file;

  bool exited() const { return evidence.spawn_errno == 0 && status.signal == 0; }
  bool recorded() const {
    return error_file && error_file->form != ErrorFile::Form::kUnreadable &&
           !error_file->message.empty();
  }
  // The traceback is why the process ended, not something it logged and survived. Python exits
  // with 1; a program that catches, prints and exits with its own code prints it last.
  bool raised() const {
    if (!exited() || !traceback || traceback->aside) return false;
    return status.exit_code == 1 ? traceback->lines_after <= kMaxLinesAfterTraceback
                                 : traceback->lines_after == 0;
  }
  bool raised(std::initializer_list<std::string_view> types) const {
    return raised() && std::find(types.begin(), types.end(), traceback->type) != types.end();
  }
  bool before_any_output() const {
    bool whole = evidence.stderr_tail.size() < kTailBytes;
    return whole && evidence.stdout_tail.empty() && (!traceback || traceback->lines_before == 0);
  }
  std::string_view last_stderr_line() const {
    for (auto line = stderr_lines.rbegin(); line != stderr_lines.rend(); ++line) {
      if (!is_blank(*line)) return *line;
    }
    return {};
  }
};

enum class Heals { kYes, kNo, kUnlessFirstOutput };

struct Rule {
  std::string_view kind;
  bool (*matches)(const Facts&);
  std::string (*message)(const Facts&);
  Heals heals = Heals::kYes;
  std::string_view hint = {};
};

template <int kSignal>
bool died_of(const Facts& facts) {
  return facts.evidence.spawn_errno == 0 && facts.status.signal == kSignal;
}

template <int... kCodes>
bool spawn_failed_with(const Facts& facts) {
  return ((facts.evidence.spawn_errno == kCodes) || ...);
}

std::string end_message(const Facts& facts) {
  return describe_end(facts.status);
}

std::string spawn_message(const Facts& facts) {
  if (!facts.evidence.spawn_message.empty()) return clean_line(facts.evidence.spawn_message);
  return std::string("could not be started: ") + strerror(facts.evidence.spawn_errno);
}

// Python's own exit code says nothing; another one was chosen by the program.
std::string with_code(const Facts& facts, std::string text) {
  if (facts.status.exit_code != 1) text += ", " + describe_end(facts.status);
  return text;
}

std::string exception_message(const Facts& facts) {
  if (facts.raised()) return with_code(facts, facts.traceback->summary());
  return with_code(facts, facts.error_file->message);
}

std::string last_line_message(const Facts& facts) {
  return with_code(facts, std::string(facts.last_stderr_line()));
}

// What a program's own handler said about the signal that then ended it.
bool recorded_crash(const Facts& facts) {
  return facts.evidence.spawn_errno == 0 && facts.status.signal != 0 && facts.recorded() &&
         facts.error_file->native();
}

std::string crash_message(const Facts& facts) {
  if (!recorded_crash(facts)) return end_message(facts);
  std::string text = facts.error_file->message;
  const std::string name = signal_name(facts.status.signal) + ": ";
  if (text.starts_with(name)) text.erase(0, name.size());
  return end_message(facts) + ": " + text;
}

std::string recorded_message(const Facts& facts) {
  std::string text = end_message(facts);
  if (facts.recorded()) text += ": " + facts.error_file->message;
  return text;
}

// `python train.py` without such a file: Python exits with 2 before it runs anything.
bool script_missing(const Facts& facts) {
  return facts.exited() && facts.status.exit_code == 2 &&
         facts.last_stderr_line().find(": can't open file ") != std::string_view::npos;
}

// `python -m name` without such a module prints one line and no traceback.
bool module_missing(const Facts& facts) {
  return facts.exited() && facts.status.exit_code == 1 && !facts.traceback &&
         facts.last_stderr_line().find(": No module named ") != std::string_view::npos;
}

bool import_failed(const Facts& facts) {
  return facts.raised({"ModuleNotFoundError", "ImportError"}) || module_missing(facts);
}

std::string import_message(const Facts& facts) {
  return module_missing(facts) ? last_line_message(facts) : exception_message(facts);
}

// An error file whose message has the form "SomeError: text" was written for an exception.
bool recorded_exception(const Facts& facts) {
  return facts.exited() && facts.recorded() && facts.error_file->form == ErrorFile::Form::kFull &&
         !facts.error_file->callstack.empty();
}

constexpr auto kAlways = [](const Facts&) { return true; };

constexpr Rule kRules[] = {
    {"exec_not_found", spawn_failed_with<ENOENT, ENOTDIR, ENAMETOOLONG>, spawn_message, Heals::kNo,
     "if the file is there, the interpreter or loader that it names is missing"},
    {"exec_denied", spawn_failed_with<EACCES, EPERM>, spawn_message, Heals::kNo,
     "is it executable, and may it be executed on that file system?"},
    {"exec_bad_format", spawn_failed_with<ENOEXEC, ELIBBAD, EINVAL>, spawn_message, Heals::kNo,
     "a script needs a #! line; a binary must be built for this machine"},
    {"spawn_failed", [](const Facts& facts) { return facts.evidence.spawn_errno != 0; },
     spawn_message},
    {"killed", died_of<SIGKILL>,
     [](const Facts& facts) {
       return end_message(facts) + ": the kernel may have run out of memory";
     }},
    {"segfault", died_of<SIGSEGV>, crash_message},
    {"abort", died_of<SIGABRT>, crash_message},
    {"bus_error", died_of<SIGBUS>, crash_message, Heals::kYes,
     "often a full /dev/shm or a mapped file that became shorter"},
    {"fpe", died_of<SIGFPE>, crash_message},
    {"illegal_instruction", died_of<SIGILL>, crash_message, Heals::kYes,
     "was it built for another processor?"},
    {"terminated", died_of<SIGTERM>, end_message, Heals::kYes,
     "the signal did not come from muster"},
    {"hangup", died_of<SIGHUP>, end_message, Heals::kYes, "the signal did not come from muster"},
    {"interrupted", died_of<SIGINT>, end_message, Heals::kYes,
     "the signal did not come from muster"},
    {"signal",
     [](const Facts& facts) { return facts.evidence.spawn_errno == 0 && facts.status.signal != 0; },
     end_message},
    {"python_syntax_error",
     [](const Facts& facts) {
       return facts.raised({"SyntaxError", "IndentationError", "TabError"});
     },
     exception_message, Heals::kUnlessFirstOutput},
    {"python_import_error", import_failed, import_message, Heals::kUnlessFirstOutput},
    {"script_not_found", script_missing, last_line_message, Heals::kUnlessFirstOutput},
    {"memory_error", [](const Facts& facts) { return facts.raised({"MemoryError"}); },
     exception_message},
    {"cpp_exception",
     [](const Facts& facts) {
       return !facts.raised() && recorded_exception(facts) && facts.error_file->native();
     },
     exception_message},
    {"python_exception",
     [](const Facts& facts) { return facts.raised() || recorded_exception(facts); },
     exception_message},
    {"exit_code", kAlways, recorded_message},
};

Facts read_facts(const Evidence& evidence) {
  Facts facts{evidence,
              decode_wait_status(evidence.wait_status),
              clean_lines(evidence.stderr_tail),
              clean_lines(evidence.stdout_tail),
              std::nullopt,
              std::nullopt};
  facts.traceback = find_traceback(facts.stderr_lines);
  if (evidence.error_file_present) facts.error_file = parse_error_file(evidence.error_file_text);
  return facts;
}

const Rule& find_rule(const Facts& facts) {
  return *std::find_if(std::begin(kRules), std::end(kRules) - 1,
                       [&](const Rule& rule) { return rule.matches(facts); });
}

bool can_heal(const Rule& rule, const Facts& facts) {
  if (rule.heals == Heals::kUnlessFirstOutput) return !facts.before_any_output();
  return rule.heals == Heals::kYes;
}

void take_excerpt(const Facts& facts, event::FailureFound& failure) {
  if (facts.evidence.spawn_errno != 0) return;
  auto take = [&](const std::vector<std::string>& lines, size_t max, const char* source) {
    failure.excerpt = last_lines(lines, max);
    failure.excerpt_source = failure.excerpt.empty() ? "" : source;
  };
  if (facts.raised()) return take(facts.traceback->lines, kTracebackLines, "stderr");
  if (recorded_exception(facts) || recorded_crash(facts)) {
    return take(facts.error_file->callstack, kTracebackLines, "error file");
  }
  take(facts.stderr_lines, kExcerptLines, "stderr");
  if (failure.excerpt.empty()) take(facts.stdout_lines, kExcerptLines, "stdout");
}

void add_note(std::string& note, std::string_view text) {
  if (text.empty()) return;
  if (!note.empty()) note += "; ";
  note += text;
}

std::string make_note(const Rule& rule, const Facts& facts) {
  std::string note;
  if (facts.error_file && facts.error_file->form == ErrorFile::Form::kUnreadable) {
    add_note(note, "error file unreadable: " + facts.error_file->problem);
  } else if (facts.recorded() && facts.status.signal != 0 && !recorded_crash(facts)) {
    add_note(note, "it had recorded: " + facts.error_file->message);
  }
  add_note(note, rule.hint);
  const std::optional<Traceback>& traceback = facts.traceback;
  if (traceback && !facts.raised()) {
    add_note(note, "earlier on stderr: " + traceback->summary());
  } else if (traceback && !traceback->cause.empty()) {
    add_note(note, "it began with " + traceback->cause);
  }
  int code = facts.status.exit_code;
  if (facts.exited() && rule.kind == "exit_code" && code > 128 && code <= 128 + SIGRTMAX) {
    add_note(note, "a shell exits with " + std::to_string(code) + " when its command dies of " +
                       signal_name(code - 128));
  }
  return cut_line(note, kMaxMessage);
}

int failure_exit_code(const Facts& facts) {
  if (facts.evidence.spawn_errno == 0) return facts.status.exit_code;
  // As shells have it: not there is 127, there but of no use 126.
  return spawn_failed_with<ENOENT, ENOTDIR, ENAMETOOLONG>(facts) ? 127 : 126;
}

}  // namespace

std::vector<std::string_view> failure_kinds() {
  std::vector<std::string_view> kinds;
  for (const Rule& rule : kRules) {
    if (kinds.empty() || kinds.back() != rule.kind) kinds.push_back(rule.kind);
  }
  return kinds;
}

event::FailureFound diagnose(const Evidence& evidence) {
  Facts facts = read_facts(evidence);
  const Rule& rule = find_rule(facts);
  event::FailureFound failure;
  failure.attempt = evidence.attempt;
  failure.rank = evidence.rank;
  failure.local_rank = evidence.local_rank;
  failure.pid = evidence.pid;
  failure.kind = rule.kind;
  failure.signal = evidence.spawn_errno == 0 ? facts.status.signal : 0;
  failure.exit_code = failure_exit_code(facts);
  failure.message = cut_line(rule.message(facts), kMaxMessage);
  take_excerpt(facts, failure);
  failure.note = make_note(rule, facts);
  if (facts.error_file) failure.comm_error = cut_line(facts.error_file->comm_error, kMaxName);
  if (failure.comm_error.empty() && evidence.broken_operation) {
    failure.comm_error = "operation_failed";
  }
  failure.can_heal = can_heal(rule, facts);
  return failure;
}

}  // namespace muster
