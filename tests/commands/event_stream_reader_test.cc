// SPDX-License-Identifier: Apache-2.0
#include "supervisor/commands/event_stream_reader.h"

#include <doctest/doctest.h>

namespace muster {

TEST_CASE("messages are the same however the stream is cut") {
  const std::string text =
      ": hello\n"
      "event: state\nid: e-1\ndata: {\"a\":\ndata: 1}\n\n"
      "data: plain\r\n\r\n"
      "event: nothing\n\n"
      "id: e-2\nevent:change\ndata:x\n\n"
      "data: not yet whole\n";
  for (size_t step = 1; step <= text.size(); ++step) {
    CAPTURE(step);
    EventStreamReader reader;
    std::vector<EventStreamReader::Message> messages;
    for (size_t at = 0; at < text.size(); at += step) {
      for (auto& message : reader.take(std::string_view(text).substr(at, step)))
        messages.push_back(message);
    }
    REQUIRE(messages.size() == 3);
    CHECK(messages[0].event == "state");
    CHECK(messages[0].id == "e-1");
    CHECK(messages[0].data == "{\"a\":\n1}");
    CHECK(messages[1].event == "message");
    CHECK(messages[1].id == "e-1");
    CHECK(messages[1].data == "plain");
    CHECK(messages[2].event == "change");
    CHECK(messages[2].id == "e-2");
    CHECK(messages[2].data == "x");
  }
}

TEST_CASE("a message without end is given up at the limit") {
  EventStreamReader reader;
  const std::string megabyte(1 << 20, 'x');
  reader.take("data: ");
  for (size_t i = 0; i < EventStreamReader::kMaxMessage >> 20; ++i) {
    CHECK_FALSE(reader.overflowed());
    reader.take(megabyte);
  }
  CHECK(reader.overflowed());
  CHECK(reader.take("\n\ndata: y\n\n").empty());
}

}  // namespace muster
