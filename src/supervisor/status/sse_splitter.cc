// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/sse_splitter.h"

#include <algorithm>
#include <utility>

namespace muster {

namespace {

std::string_view value_of(std::string_view line, size_t colon) {
  line.remove_prefix(colon + 1);
  if (!line.empty() && line.front() == ' ') line.remove_prefix(1);
  return line;
}

SseSplitter::Message parse(std::string_view block) {
  SseSplitter::Message message;
  while (!block.empty()) {
    const std::string_view line = block.substr(0, block.find('\n'));
    block.remove_prefix(std::min(block.size(), line.size() + 1));
    const size_t colon = line.find(':');
    if (colon == 0 || colon == std::string_view::npos) continue;
    const std::string_view name = line.substr(0, colon);
    if (name == "event") message.event = value_of(line, colon);
    if (name == "id") message.id = value_of(line, colon);
    if (name == "data") message.data = value_of(line, colon);
  }
  return message;
}

}  // namespace

void SseSplitter::add(std::string_view bytes) {
  text_.erase(0, std::exchange(begin_, 0));
  text_.append(bytes);
}

std::optional<SseSplitter::Message> SseSplitter::next() {
  for (size_t end = 0; (end = text_.find("\n\n", begin_)) != std::string::npos;) {
    Message message = parse(std::string_view(text_).substr(begin_, end - begin_));
    begin_ = end + 2;
    if (!message.data.empty()) return message;
  }
  return std::nullopt;
}

}  // namespace muster
