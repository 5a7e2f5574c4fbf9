// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/last_words.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string_view>

#include "supervisor/diagnosis/text_lines.h"
#include "supervisor/diagnosis/traceback.h"

namespace muster {

namespace {

using Lines = std::vector<std::string>;

constexpr size_t kMaxWhatLines = 12;
constexpr std::string_view kThrown = "terminate called after throwing an instance of '";
constexpr std::string_view kClang = "libc++abi: terminating ";

std::string_view after(std::string_view line, std::string_view mark) {
  const size_t at = line.find(mark);
  return at == std::string_view::npos ? std::string_view() : line.substr(at + mark.size());
}

// "libc++abi: terminating due to uncaught exception of type std::runtime_error: NaN"
void read_clang(std::string_view line, TerminateText& text) {
  const std::string_view rest = after(line, "uncaught exception of type ");
  // The first ": " ends the type; "::" inside of it has no space.
  const size_t colon = std::min(rest.find(": "), rest.size());
  text.type = rest.substr(0, colon);
  if (colon < rest.size()) text.message = rest.substr(colon + 2);
}

// "  what():  NaN", which may go on below.
void read_what(const Lines& lines, TerminateText& text) {
  constexpr std::string_view kWhat = "  what():  ";
  for (size_t i = text.begin + 1; i < lines.size() && i < text.begin + 4; ++i) {
    const size_t at = lines[i].find(kWhat);
    if (at == std::string::npos) continue;
    text.message = lines[i].substr(at + kWhat.size());
    text.line = i;
    text.end = i + 1;
    while (text.end < lines.size() && text.end < i + kMaxWhatLines && !is_blank(lines[text.end]) &&
           !lines[text.end].starts_with("Fatal Python error: "))
      ++text.end;
    return;
  }
}

// "  File "a.py", line 3 in f": how faulthandler writes a frame.
bool read_fault_frame(std::string_view line, std::string& file, std::string& where) {
  constexpr std::string_view kFile = "  File \"";
  if (!line.starts_with(kFile)) return false;
  const size_t close = line.find("\", line ", kFile.size());
  if (close == std::string_view::npos) return false;
  file = line.substr(kFile.size(), close - kFile.size());
  std::string_view rest = line.substr(close + 8);
  const size_t in = rest.find(" in ");
  if (in == std::string_view::npos) return false;
  where = std::string(rest.substr(in + 4)) + " (" + file.substr(file.rfind('/') + 1) + ":" +
          std::string(rest.substr(0, in)) + ")";
  return true;
}

// The frames of the thread that begins at `at`.
void read_stack(const Lines& lines, size_t at, FaultDump& dump) {
  bool own = false;
  for (size_t i = at + 1; i < lines.size(); ++i) {
    std::string file, where;
    if (!read_fault_frame(lines[i], file, where)) break;
    dump.end = i + 1;
    if (own || (!dump.where.empty() && is_library_file(file))) continue;
    own = !is_library_file(file);
    dump.where = where;
    dump.line = i;
  }
}

}  // namespace

std::string TerminateText::summary() const {
  if (type.empty()) return message;
  return message.empty() || message == type ? type : type + ": " + message;
}

std::optional<TerminateText> find_terminate(const Lines& lines) {
  for (size_t i = lines.size(); i-- > 0;) {
    const std::string_view line = lines[i];
    TerminateText text{"", "", i, i, i + 1};
    if (const std::string_view type = after(line, kThrown); !type.empty()) {
      text.type = type.substr(0, type.rfind('\''));
      read_what(lines, text);
    } else if (line.find(kClang) != std::string_view::npos) {
      read_clang(line, text);
      if (text.type.empty()) text.message = after(line, "libc++abi: ");
    } else if (line.starts_with("terminate called without an active exception")) {
      text.message = line;
    } else {
      continue;  // "terminate called recursively" says nothing: another thread had begun it
    }
    return text;
  }
  return std::nullopt;
}

std::optional<FaultDump> find_fault_dump(const Lines& lines) {
  constexpr std::string_view kFatal = "Fatal Python error: ";
  for (size_t i = lines.size(); i-- > 0;) {
    const size_t at = lines[i].find(kFatal);
    if (at == std::string::npos) continue;
    FaultDump dump{lines[i].substr(at + kFatal.size()), i, i + 1, i, ""};
    for (size_t k = i + 1; k < lines.size(); ++k) {
      if (!lines[k].starts_with("Current thread ")) continue;
      read_stack(lines, k, dump);
      break;
    }
    return dump;
  }
  return std::nullopt;
}

}  // namespace muster
