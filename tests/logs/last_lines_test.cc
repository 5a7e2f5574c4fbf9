// SPDX-License-Identifier: Apache-2.0
#include "supervisor/logs/last_lines.h"

#include <doctest/doctest.h>

namespace muster {

namespace {

constexpr Stream kOut = Stream::kStdout;
constexpr Stream kErr = Stream::kStderr;

// What came, piece by piece.
struct Came {
  ArrivalOrder order;
  std::string out, err;

  Came& add(Stream stream, const std::string& bytes) {
    order.add(stream, bytes.size());
    (stream == kOut ? out : err) += bytes;
    return *this;
  }
  // "o:" and "e:" before each line, "|" between them.
  std::string last(size_t count = 100) const { return last_of(out, 0, count); }
  std::string last_of(std::string_view out_text, size_t out_behind, size_t count = 100) const {
    std::string text;
    for (const StreamLine& line :
         lines_in_order({out_text, out_behind}, {err, 0}, order.pieces(), count)) {
      text += (text.empty() ? "" : "|") + std::string(line.stream == kOut ? "o:" : "e:");
      text += line.text;
    }
    return text;
  }
};

}  // namespace

TEST_CASE("lines of both streams stand in the order in which they came") {
  Came came;
  came.add(kOut, "1\n").add(kErr, "2\n3\n").add(kOut, "4\n5\n").add(kErr, "6\n");
  CHECK(came.last() == "o:1|e:2|e:3|o:4|o:5|e:6");
  CHECK(came.last(3) == "o:4|o:5|e:6");
  CHECK(came.last(2) == "o:5|e:6");
  CHECK(came.last(0) == "");
  CHECK(Came().last() == "");
}

TEST_CASE("one stream alone has its lines in order") {
  Came came;
  came.add(kErr, "1\n").add(kErr, "2\n\n").add(kErr, "3\n");
  CHECK(came.order.pieces().size() == 1);
  CHECK(came.last() == "e:1|e:2|e:|e:3");
}

TEST_CASE("a line came when its end did") {
  Came came;
  came.add(kOut, "1\nlo").add(kErr, "2\n").add(kOut, "ng").add(kErr, "3\n").add(kOut, " one\n4");
  CHECK(came.last() == "o:1|e:2|e:3|o:long one|o:4");
  CHECK_MESSAGE(came.add(kErr, "5\n").last() == "o:1|e:2|e:3|o:long one|o:4|e:5",
                "a line without an end when its last byte came");
  CHECK(came.add(kOut, "!").last() == "o:1|e:2|e:3|o:long one|e:5|o:4!");
}

TEST_CASE("a progress bar is one line, where it was last drawn") {
  Came came;
  for (int i = 0; i < 3; ++i) {
    came.add(kErr, "\r" + std::to_string(i) + "%");
    came.add(kOut, "step " + std::to_string(i) + "\n");
  }
  CHECK(came.last() == "o:step 0|o:step 1|e:\r0%\r1%\r2%|o:step 2");
}

TEST_CASE("only the latest pieces are kept, and lines before them are left out") {
  Came came;
  const size_t pieces = 3 * ArrivalOrder::kMaxPieces;
  for (size_t i = 0; i < pieces; ++i) {
    came.add(i % 2 == 0 ? kOut : kErr, std::to_string(i) + "\n");
    CHECK(came.order.pieces().size() <= ArrivalOrder::kMaxPieces);
  }
  const std::vector<StreamLine> lines =
      lines_in_order({came.out, 0}, {came.err, 0}, came.order.pieces(), pieces);
  REQUIRE(lines.size() == came.order.pieces().size());
  CHECK(lines.size() >= ArrivalOrder::kMaxPieces / 2);
  for (size_t i = 0; i < lines.size(); ++i)
    CHECK(lines[lines.size() - 1 - i].text == std::to_string(pieces - 1 - i));
}

TEST_CASE("where only the end of a stream is kept, so are only its lines") {
  Came came;
  came.add(kOut, "12345\n").add(kErr, "a\n").add(kOut, "67\n");
  CHECK(came.last_of("45\n67\n", 0) == "o:45|e:a|o:67");
  CHECK(came.last_of("7\n", 0) == "e:a|o:7");
}

TEST_CASE("what was read and is still on its way to the file changes no order") {
  Came came;
  came.add(kOut, "1\n").add(kErr, "a\n").add(kOut, "2\n3\n").add(kErr, "b\n");
  CHECK(came.last_of("1\n", 4) == "o:1|e:a|e:b");
  CHECK(came.last_of("1\n2\n", 2) == "o:1|e:a|o:2|e:b");
  CHECK(came.last_of("", 6) == "e:a|e:b");
}

}  // namespace muster
