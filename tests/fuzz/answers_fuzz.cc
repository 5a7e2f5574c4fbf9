// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "loop/check.h"
#include "supervisor/commands/event_stream_reader.h"
#include "supervisor/commands/keys.h"
#include "supervisor/commands/log_lines.h"
#include "supervisor/commands/run_url.h"
#include "supervisor/commands/status_text.h"
#include "supervisor/commands/terminal_text.h"

// What `muster status` and `muster logs` are told by another process, which may be no muster: it is
// shown or refused, and drives no terminal either way.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster;
  const std::string_view input(reinterpret_cast<const char*>(data), size);

  const std::string shown = only_colours(input);
  for (size_t at = shown.find('\x1b'); at != std::string::npos; at = shown.find('\x1b', at + 1)) {
    MUST(at + 2 < shown.size() && shown[at + 1] == '[');
    MUST(shown[shown.find_first_not_of("0123456789;:", at + 2)] == 'm');
  }
  if (Result<StatusText> text = status_text(input, {false, true}); text) {
    for (const std::string& line : text->lines)
      MUST(line.find_first_of("\x1b\n\r\b") == std::string::npos);
  }
  if (Result<ShownPage> page = parse_page(input); page) MUST(page->lines.size() <= size);
  if (Result<SearchAnswer> answer = parse_search_answer(input); answer && answer->hit) {
    for (const auto& [from, to] : answer->hit->matches)
      MUST(from <= answer->hit->line.text.size() && to <= answer->hit->line.text.size());
  }
  if (Result<RunUrl> url = parse_run_url(input); url) MUST(url->port >= 0 && url->port < 65536);
  keys_in(input);

  // The same messages, whole or byte by byte.
  EventStreamReader whole, pieces;
  const auto messages = whole.take(input);
  size_t count = 0;
  for (size_t i = 0; i < size; ++i) {
    for (const auto& message : pieces.take(input.substr(i, 1))) {
      MUST(count < messages.size() && message.data == messages[count].data);
      MUST(message.event == messages[count].event && message.id == messages[count].id);
      ++count;
    }
  }
  MUST(count == messages.size());
  return 0;
}
