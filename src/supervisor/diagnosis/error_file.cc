// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/error_file.h"

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

}  // namespace

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
  }
  return file;
}

}  // namespace muster
