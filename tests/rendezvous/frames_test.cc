// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/frames.h"

#include <doctest/doctest.h>

#include <vector>

namespace muster {

namespace {

std::string frame(uint8_t kind, std::string_view body) {
  std::string out;
  append_frame(out, kind, body);
  return out;
}

}  // namespace

TEST_CASE("a frame is a length, a kind and a body") {
  CHECK(frame(7, "ab") == std::string("\x03\0\0\0\x07"
                                      "ab",
                                      7));
  CHECK(frame(7, "") == std::string("\x01\0\0\0\x07", 5));
}

TEST_CASE("frames come out whole, however their bytes arrive") {
  const std::string bytes = frame(1, "first") + frame(2, "") + frame(3, std::string(5000, 'x'));
  for (size_t step : {size_t{1}, size_t{2}, size_t{3}, size_t{7}, size_t{4096}, bytes.size()}) {
    CAPTURE(step);
    FrameReader reader(kMaxFrame);
    std::vector<std::pair<int, std::string>> got;
    for (size_t at = 0; at < bytes.size(); at += step) {
      reader.feed(std::string_view(bytes).substr(at, step));
      Frame found;
      while (reader.next(&found) == FrameReader::Answer::kFrame)
        got.emplace_back(found.kind, found.body);
    }
    REQUIRE(got.size() == 3);
    CHECK(got[0] == std::pair(1, std::string("first")));
    CHECK(got[1] == std::pair(2, std::string()));
    CHECK(got[2] == std::pair(3, std::string(5000, 'x')));
    CHECK(reader.held() == 0);
  }
}

TEST_CASE("a frame of the largest size is taken, one byte more is malformed before it arrives") {
  FrameReader reader(100);
  Frame found;
  reader.feed(frame(1, std::string(99, 'x')));
  CHECK(reader.next(&found) == FrameReader::Answer::kFrame);
  reader.feed(std::string_view("\x65\0\0\0", 4));
  CHECK(reader.next(&found) == FrameReader::Answer::kMalformed);
  CHECK(reader.why() == "a frame of 101 bytes, more than 100");
  CHECK(reader.next(&found) == FrameReader::Answer::kMalformed);
}

TEST_CASE("the limit can be raised between two frames that arrived together") {
  FrameReader reader(10);
  Frame found;
  reader.feed(frame(1, "x") + frame(2, std::string(50, 'y')));
  REQUIRE(reader.next(&found) == FrameReader::Answer::kFrame);
  reader.set_max_frame(100);
  CHECK(reader.next(&found) == FrameReader::Answer::kFrame);
  CHECK(found.body.size() == 50);
}

TEST_CASE("an empty frame is malformed") {
  FrameReader reader(kMaxFrame);
  Frame found;
  reader.feed(std::string_view("\0\0\0\0", 4));
  CHECK(reader.next(&found) == FrameReader::Answer::kMalformed);
  CHECK(reader.why() == "an empty frame");
}

}  // namespace muster
