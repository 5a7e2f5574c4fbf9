// SPDX-License-Identifier: Apache-2.0
#include "supervisor/logs/line_splitter.h"

#include <doctest/doctest.h>

#include <vector>

namespace muster {

namespace {

using Kind = LineSplitter::Kind;

// Writes down what comes out: L:, O:, C: and P: for the four kinds.
struct Recorded {
  LineSplitter splitter;
  std::vector<std::string> pieces;

  LineSplitter::Emit emit() {
    return [this](Kind kind, std::string_view text) {
      pieces.push_back(std::string(1, "LOCP"[static_cast<int>(kind)]) + ":" + std::string(text));
    };
  }
  void feed(std::string_view bytes) { splitter.feed(bytes, emit()); }
  void release() { splitter.release(emit()); }
  void finish() { splitter.finish(emit()); }
};

using Pieces = std::vector<std::string>;

}  // namespace

TEST_CASE_FIXTURE(Recorded, "whole lines come out in one piece, untouched") {
  std::string text("a\nb\0c\n\xff\xfe\n\nd\r\n", 13);
  feed(text);
  CHECK(pieces == Pieces{"L:" + text});
  CHECK_FALSE(splitter.holding());
}

TEST_CASE_FIXTURE(Recorded, "a line cut anywhere comes out whole") {
  std::string text = "one\r\ntwo \xc3\xa4\nthree\n";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    Recorded each;
    each.feed(text.substr(0, cut));
    each.feed(text.substr(cut));
    std::string all;
    for (const std::string& piece : each.pieces) {
      CHECK(piece[0] == 'L');
      all += piece.substr(2);
    }
    CHECK(all == text);
  }
}

TEST_CASE_FIXTURE(Recorded, "a beginning is held until released and its rest closes it") {
  feed("x\npartial");
  CHECK(splitter.holding());
  release();
  CHECK_FALSE(splitter.holding());
  feed(" end\nnext\n");
  CHECK(pieces == Pieces{"L:x\n", "O:partial", "C: end\n", "L:next\n"});
}

TEST_CASE_FIXTURE(Recorded, "a beginning that ends in time is an ordinary line") {
  feed("partial");
  feed(" end\n");
  CHECK(pieces == Pieces{"L:partial end\n"});
}

TEST_CASE_FIXTURE(Recorded, "the last line without newline is given out at the end") {
  feed("a\nlast");
  finish();
  CHECK(pieces == Pieces{"L:a\n", "O:last"});
}

TEST_CASE_FIXTURE(Recorded, "a long line comes in bounded pieces and is closed once") {
  std::string piece(40'000, 'x');
  size_t total = 0;
  for (int i = 0; i < 400; ++i)
    feed(piece);
  feed("\n");
  for (size_t i = 0; i + 1 < pieces.size(); ++i) {
    CHECK(pieces[i][0] == 'O');
    CHECK(pieces[i].size() <= LineSplitter::kHoldLimit + piece.size() + 2);
    total += pieces[i].size() - 2;
  }
  CHECK(pieces.back()[0] == 'C');
  CHECK(total + pieces.back().size() - 3 == 400 * piece.size());
}

TEST_CASE_FIXTURE(Recorded, "states of a redrawn line replace each other and the last one stays") {
  feed("\r10%");
  feed("\r20%\r30%");
  feed("\r100%\nafter\n");
  CHECK(pieces == Pieces{"P:10%", "P:30%", "L:100%\n", "L:after\n"});
}

TEST_CASE_FIXTURE(Recorded, "a bar with a trailing carriage return is progress once released") {
  feed("10%\r");
  CHECK(splitter.holding());  // it may still become "\r\n"
  release();
  feed("20%\r");
  feed("\n");
  CHECK(pieces == Pieces{"P:10%", "P:20%", "L:20%\r\n"});
}

TEST_CASE_FIXTURE(Recorded, "a carriage return and newline cut apart are one line end") {
  feed("dos\r");
  feed("\nx\n");
  CHECK(pieces == Pieces{"L:dos\r\n", "L:x\n"});
}

TEST_CASE_FIXTURE(Recorded, "only the redrawn line of a chunk is reduced") {
  feed("a\n1\r2\r3\nb\n4\r5\n");
  CHECK(pieces == Pieces{"L:a\n", "L:3\n", "L:b\n", "L:5\n"});
}

TEST_CASE_FIXTURE(Recorded, "a bar that wipes itself leaves nothing at the end") {
  feed("\r50%");
  feed("\r    \r");
  finish();
  CHECK(pieces == Pieces{"P:50%", "P:"});
}

TEST_CASE_FIXTURE(Recorded, "text after a wiped bar is the line") {
  feed("\r50%\r    \rsaved\n");
  CHECK(pieces == Pieces{"L:saved\n"});
}

TEST_CASE_FIXTURE(Recorded, "a bar without newline keeps its last state at the end") {
  feed("\r50%\r99%");
  finish();
  CHECK(pieces == Pieces{"P:99%", "O:99%"});
}

}  // namespace muster
