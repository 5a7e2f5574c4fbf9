// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>

#include "diagnosis/pages.h"

namespace muster {

using namespace pages_test;

TEST_CASE("a message is waited for, and the sender is elsewhere") {
  Pages pages(2);
  pages.message(1, OpKind::kRecv, 0, 61);
  pages.in(0, OpKind::kAllReduce, 7, 60);
  const auto texts = pages.texts();
  REQUIRE(texts.size() == 2);
  CHECK(texts[0] ==
        "rank 1 waits since 61 s for a message from rank 0 (4 B, int32), which is in all_reduce "
        "#7 since 60 s");
  // And rank 1 keeps rank 0 waiting, because it waits for it.
  CHECK(texts[1] ==
        "rank 1 never entered all_reduce #7 (4.2 MB, float32) and waits for a message from rank 0 "
        "since 61 s; rank 0 waits since 60 s");
}

TEST_CASE("a message that nobody takes") {
  Pages pages(2);
  pages.message(0, OpKind::kSend, 1, 15).tag = 9;
  pages.of(1);
  const auto all = pages.find();
  REQUIRE(all.found.size() == 1);
  CHECK(all.found[0].text ==
        "rank 0 waits since 15 s to send a message to rank 1 (4 B, int32, tag 9), which has "
        "entered no operation yet");
  CHECK(all.found[0].kind == "message");
  CHECK(all.found[0].suspects == "1");
  CHECK(all.found[0].waiting == "0");
}

TEST_CASE("of a chain of messages the end is told, with those who wait behind it") {
  Pages pages(8);
  for (int rank = 1; rank < 8; ++rank)
    pages.message(rank, OpKind::kRecv, rank - 1, 20 + rank);
  pages.ended(0, OpKind::kAllReduce, 7, 30);
  const auto all = pages.find();
  REQUIRE(all.found.size() == 1);
  CHECK(all.found[0].text ==
        "rank 1 waits since 21 s for a message from rank 0 (4 B, int32), which is in no "
        "operation; its last, all_reduce #7, ended 30 s ago; ranks 2-7 wait behind it");
  CHECK(all.found[0].suspects == "0");
  CHECK(all.found[0].waiting == "1-7");
}

TEST_CASE("a chain of very many costs little, whichever way it runs") {
  constexpr int kRanks = 60'000;
  for (bool upwards : {false, true}) {
    Pages pages(kRanks);
    const RankCommunicator world = pages.of(0);
    for (int rank = 0; rank < kRanks; ++rank) {
      pages.of(rank, world).rank = rank;
      const int peer = upwards ? rank + 1 : rank - 1;
      if (peer >= 0 && peer < kRanks) pages.message(rank, OpKind::kRecv, peer, 20);
    }
    const CpuTime time;
    const auto all = pages.find();
    CHECK(time.seconds() < 15);  // their square would take longer
    REQUIRE(all.found.size() == 1);
    CHECK(all.found[0].waiting == (upwards ? "0-59998" : "1-59999"));
  }
}

TEST_CASE("those who wait for each other in a circle are told once") {
  Pages pages(4);
  pages.message(0, OpKind::kRecv, 1, 20);
  pages.message(1, OpKind::kRecv, 2, 21);
  pages.message(2, OpKind::kSend, 0, 22);
  pages.message(3, OpKind::kRecv, 2, 23);
  const auto all = pages.find();
  REQUIRE(all.found.size() == 1);
  CHECK(all.found[0].kind == "circle");
  CHECK(all.found[0].text ==
        "ranks 0-2 wait for each other since 22 s: rank 0 for a message from rank 1 (4 B, int32), "
        "rank 1 for a message from rank 2 (4 B, int32), rank 2 to send a message to rank 0 (4 B, "
        "int32)");
  CHECK(all.found[0].suspects == "0-2");
  CHECK(all.found[0].waiting == "0-3");
}

TEST_CASE("a message from a dead rank is told at once") {
  Pages pages(2);
  pages.message(1, OpKind::kRecv, 0, 0.2);
  pages.ended(0, OpKind::kAllReduce, 7, 1);
  pages.died(0);
  CHECK(pages.texts().at(0) ==
        "rank 1 waits since 200 ms for a message from rank 0 (4 B, int32), which has died");
}

}  // namespace muster
