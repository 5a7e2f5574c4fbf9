// SPDX-License-Identifier: Apache-2.0
#include "supervisor/commands/event_stream_reader.h"

#include <utility>

namespace muster {

std::vector<EventStreamReader::Message> EventStreamReader::take(std::string_view piece) {
  std::vector<Message> messages;
  while (!piece.empty() && !overflowed_) {
    const size_t end = piece.find('\n');
    line_ += piece.substr(0, end);
    if (line_.size() + data_.size() > kMaxMessage) overflowed_ = true;
    if (end == std::string_view::npos) break;
    if (line_.ends_with('\r')) line_.pop_back();
    finish_line(messages);
    line_.clear();
    piece.remove_prefix(end + 1);
  }
  return messages;
}

void EventStreamReader::finish_line(std::vector<Message>& messages) {
  if (line_.empty()) {
    std::string data = std::exchange(data_, {});
    std::string event = std::exchange(event_, {});
    if (data.empty()) return;
    data.pop_back();  // the newline behind the last line
    messages.push_back({event.empty() ? "message" : std::move(event), id_, std::move(data)});
    return;
  }
  const size_t colon = line_.find(':');
  std::string_view name = std::string_view(line_).substr(0, colon);
  std::string_view value;
  if (colon != std::string::npos) value = std::string_view(line_).substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (name == "event") event_ = value;
  if (name == "id") id_ = value;
  if (name == "data") (data_ += value) += '\n';
}

}  // namespace muster
