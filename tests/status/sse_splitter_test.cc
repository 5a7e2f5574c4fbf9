// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/sse_splitter.h"

#include <doctest/doctest.h>

#include <vector>

namespace muster {

TEST_CASE("a stream comes apart the same in pieces of any size") {
  const std::string stream =
      "event: lines\nid: 0-5\ndata: {\"a\": 1}\n\n:\n\nevent: open\ndata: {}\n\n";
  for (size_t size = 1; size <= stream.size(); ++size) {
    SseSplitter splitter;
    std::vector<SseSplitter::Message> messages;
    for (size_t at = 0; at < stream.size(); at += size) {
      splitter.add(stream.substr(at, size));
      while (auto message = splitter.next())
        messages.push_back(*message);
    }
    REQUIRE(messages.size() == 2);
    CHECK(messages[0].event == "lines");
    CHECK(messages[0].id == "0-5");
    CHECK(messages[0].data == "{\"a\": 1}");
    CHECK(messages[1].event == "open");
    CHECK(messages[1].id == "");
    CHECK(messages[1].data == "{}");
  }
}

TEST_CASE("a message without an end is noticed") {
  SseSplitter splitter;
  splitter.add("data: " + std::string(SseSplitter::kMaxMessage, 'x'));
  CHECK_FALSE(splitter.next());
  CHECK(splitter.too_long());
}

}  // namespace muster
