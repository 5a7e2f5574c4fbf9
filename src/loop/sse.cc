// SPDX-License-Identifier: Apache-2.0
#include "loop/sse.h"

#include <algorithm>

namespace muster {

namespace {

// A field's value ends with its line, so it can hold no line end; NUL would void an id.
void append_field(std::string& text, std::string_view name, std::string_view value) {
  text += name;
  text += ": ";
  std::replace_copy_if(
      value.begin(), value.end(), std::back_inserter(text),
      [](char c) { return c == '\n' || c == '\r' || c == '\0'; }, ' ');
  text += '\n';
}

// Takes the first line and its end ("\n", "\r\n" or "\r") off `text`.
std::string_view take_line(std::string_view& text, bool& has_next) {
  const size_t end = text.find_first_of("\r\n");
  has_next = end != std::string_view::npos;
  const std::string_view line = text.substr(0, end);
  if (!has_next) return line;
  const bool two = text[end] == '\r' && end + 1 < text.size() && text[end + 1] == '\n';
  text.remove_prefix(end + (two ? 2 : 1));
  return line;
}

}  // namespace

std::string sse_text(const SseMessage& message) {
  std::string text;
  text.reserve(message.data.size() + message.id.size() + message.event.size() + 32);
  if (!message.event.empty()) append_field(text, "event", message.event);
  if (!message.id.empty()) append_field(text, "id", message.id);
  std::string_view rest = message.data;
  for (bool has_next = true; has_next;) {
    text += "data: ";
    text += take_line(rest, has_next);
    text += '\n';
  }
  return text += '\n';
}

std::string sse_comment(std::string_view comment) {
  std::string text;
  append_field(text, "", comment);
  return text += '\n';
}

std::string sse_retry(int milliseconds) {
  return "retry: " + std::to_string(milliseconds) + "\n\n";
}

}  // namespace muster
