// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/error_file.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "supervisor/diagnosis/text_lines.h"

namespace muster {

namespace {

using nlohmann::json;

ErrorFile unreadable(std::string problem) {
  ErrorFile file;
  file.problem = std::move(problem);
  return file;
}

std::string first_line(const std::string& text) {
  for (std::string& line : clean_lines(text)) {
    if (!is_blank(line)) return std::move(line);
  }
  return "";
}

std::string string_at(const json& object, const char* key) {
  auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// A crash handler may not demangle: "  _ZN5Model4stepEv in trainer+0x12".
std::string with_readable_name(std::string line) {
  const size_t begin = line.find_first_not_of(' ');
  if (begin == std::string::npos || line.compare(begin, 2, "_Z") != 0) return line;
  const size_t end = std::min(line.find(' ', begin), line.size());
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(line.substr(begin, end - begin).c_str(), nullptr, nullptr, &status),
      std::free);
  return status == 0 ? line.replace(begin, end - begin, name.get()) : line;
}

}  // namespace

bool ErrorFile::native() const {
  return !callstack.empty() && callstack.front().starts_with("Stack (most recent call last)");
}

ErrorFile parse_error_file(std::string_view text) {
  if (is_blank(text)) return unreadable("it is empty");
  json root = json::parse(text, nullptr, false);
  if (root.is_discarded()) return unreadable("it is not JSON or was cut off");
  if (!root.is_object()) return unreadable("it is not a JSON object");
  auto message = root.find("message");
  if (message == root.end()) return unreadable("it has no \"message\"");
  ErrorFile file;
  if (message->is_string()) {
    file.form = ErrorFile::Form::kText;
    file.message = first_line(message->get<std::string>());
    return file;
  }
  if (!message->is_object()) return unreadable("its \"message\" is neither text nor an object");
  file.form = ErrorFile::Form::kFull;
  file.message = first_line(string_at(*message, "message"));
  auto extra = message->find("extraInfo");
  if (extra != message->end() && extra->is_object()) {
    file.callstack = clean_lines(string_at(*extra, "py_callstack"));
    for (std::string& line : file.callstack)
      line = with_readable_name(std::move(line));
    file.comm_error = first_line(string_at(*extra, "comm_error"));
  }
  return file;
}

}  // namespace muster
