// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/collectives.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "diagnosis/pages.h"

namespace muster {

namespace {

using namespace pages_test;

// Ranks but one wait in an all_reduce.
Pages one_missing(double seconds = 61) {
  Pages pages(4);
  for (int rank = 0; rank < 3; ++rank)
    pages.in(rank, OpKind::kAllReduce, 128, seconds);
  pages.ended(3, OpKind::kAllReduce, 127, seconds);
  return pages;
}

}  // namespace

TEST_CASE("who never entered an operation is named, with who waits since when") {
  const event::CollectivesFound all = one_missing().find();
  REQUIRE(all.found.size() == 1);
  const event::CollectiveFinding& found = all.found[0];
  CHECK(found.text ==
        "rank 3 never entered all_reduce #128 (4.2 MB, float32) and is in no operation; its last, "
        "all_reduce #127, ended 61 s ago; ranks 0-2 wait since 61 s");
  CHECK(found.kind == "missing");
  CHECK(found.operation == "all_reduce");
  CHECK(found.sequence == 128);
  CHECK(found.bytes == 4'200'000);
  CHECK(found.data_type == "float32");
  CHECK(found.suspects == "3");
  CHECK(found.waiting == "0-2");
  CHECK(found.waited_us == 61 * kSecond);
  CHECK(found.communicator == "world");
}

TEST_CASE("an operation that has run for a short time is no finding") {
  CHECK(one_missing(9).texts().empty());
  CHECK(one_missing(9).texts(kHangAtEndUs).size() == 1);
  CHECK(one_missing(2).texts(kHangAtEndUs).empty());
}

TEST_CASE("a page from before the operation began accuses nobody") {
  Pages pages = one_missing();
  pages.known(3).elapsed_us = 61 * kSecond;
  CHECK(pages.text() ==
        "ranks 0-2 wait since 61 s in all_reduce #128 (4.2 MB, float32); of 1 of its 4 ranks "
        "nothing is known");
  pages.known(3).elapsed_us = 50 * kSecond;
  CHECK(pages.find().found.at(0).suspects == "3");
}

TEST_CASE("the time since a page was read counts as waiting") {
  Pages pages = one_missing(5);
  for (int rank = 0; rank < 4; ++rank)
    pages.known(rank).elapsed_us = 7 * kSecond;
  CHECK(pages.texts().empty());  // the other's page is too old to accuse it, the next one will tell
  pages.known(3).elapsed_us = 0;
  CHECK(pages.find().found.at(0).kind == "missing");
  CHECK(pages.find().found.at(0).waited_us == 12 * kSecond);
}

TEST_CASE("a death is told at once") {
  Pages pages = one_missing(0.004);
  pages.died(3);
  CHECK(pages.texts().at(0) ==
        "rank 3 died before it entered all_reduce #128 (4.2 MB, float32); ranks 0-2 wait since "
        "4 ms");
  CHECK(pages.find().found[0].suspects == "3");
}

TEST_CASE("what a dead rank was in is told, and who was in it too") {
  Pages pages(4);
  for (int rank = 0; rank < 4; ++rank)
    pages.in(rank, OpKind::kAllReduce, 5, 3.25);
  pages.died(2);
  const auto all = pages.find();
  REQUIRE(all.found.size() == 1);
  CHECK(all.found[0].text ==
        "rank 2 died in all_reduce #5 (4.2 MB, float32), 3.2 s after it entered it; ranks 0-1, 3 "
        "were in it too");
  CHECK(all.found[0].kind == "died");
  CHECK(all.found[0].suspects == "2");
  CHECK(all.found[0].waiting == "0-1,3");
}

TEST_CASE("peers whose connection broke are not suspected, the dead one is") {
  Pages pages(3);
  pages.in(1, OpKind::kAllReduce, 9, 0.5);
  pages.died(1);
  pages.failed(0, OpKind::kAllReduce, 9, 0.5);
  pages.failed(2, OpKind::kAllReduce, 9, 0.5);
  const auto all = pages.find();
  REQUIRE(all.found.size() == 1);
  CHECK(all.found[0].suspects == "1");
  CHECK(all.found[0].waiting == "0,2");
}

TEST_CASE("a rank that died between operations is told with its last one") {
  Pages pages(2);
  pages.ended(0, OpKind::kAllReduce, 7, 12);
  pages.ended(1, OpKind::kAllReduce, 7, 12);
  pages.died(1);
  CHECK(pages.text() ==
        "rank 1 died outside of any operation; its last, all_reduce #7 (4.2 MB, float32), had "
        "ended 12 s before");
}

TEST_CASE("the deaths of a large job cost little") {
  constexpr int kRanks = 100'000;
  for (const bool inside : {false, true}) {
    CAPTURE(inside);
    Pages pages(kRanks);
    const RankCommunicator world = pages.of(0);
    for (int rank = 0; rank < kRanks; ++rank) {
      RankCommunicator& own = pages.of(rank, world);
      own.rank = rank;
      if (inside) {
        pages.in(rank, OpKind::kAllReduce, 7, 1);
      } else {
        pages.ended(rank, OpKind::kAllReduce, 7, 12);
      }
      pages.died(rank);
    }
    const CpuTime time;
    const auto all = pages.find();
    CHECK(time.seconds() < 15);  // their square would take longer
    CHECK(all.found.size() == kMaxCollectiveFindings);
    CHECK(all.left_out >= kRanks - static_cast<int>(kMaxCollectiveFindings));
    CHECK(all.found[0].kind == "died");
  }
}

TEST_CASE("who gave up by a deadline waited for the one that never came") {
  Pages pages(3);
  pages.failed(0, OpKind::kAllReduce, 9, 5);
  pages.failed(1, OpKind::kAllReduce, 9, 5);
  pages.ended(2, OpKind::kAllReduce, 8, 5);
  const auto all = pages.find(kHangAtEndUs);
  REQUIRE(all.found.size() == 1);
  CHECK(all.found[0].suspects == "2");
  CHECK(all.found[0].text.ends_with("; ranks 0-1 waited 5 s"));
}

TEST_CASE("an operation that failed at once accuses nobody who had not come yet") {
  Pages pages(3);
  pages.failed(0, OpKind::kAllReduce, 9, 0.02);
  pages.ended(1, OpKind::kAllReduce, 8, 0.02);
  pages.ended(2, OpKind::kAllReduce, 8, 0.02);
  CHECK(pages.texts(kHangAtEndUs).empty());
}

TEST_CASE("another kind of call under the same number is a mismatch") {
  Pages pages(4);
  for (int rank : {0, 1, 3})
    pages.in(rank, OpKind::kAllReduce, 128, 30);
  RankCall& other = pages.in(2, OpKind::kBroadcast, 128, 30);
  other.type = DataType::kUint8;
  other.count = 1000;
  const auto all = pages.find();
  REQUIRE(all.found.size() == 1);
  CHECK(all.found[0].kind == "mismatch");
  CHECK(all.found[0].text ==
        "rank 2 called broadcast #128 (root 0, 1 kB uint8) where ranks 0-1, 3 called all_reduce "
        "#128 (sum, 4.2 MB float32)");
  CHECK(all.found[0].suspects == "2");
}

TEST_CASE("other sizes, types, roots and reductions are mismatches") {
  struct Row {
    OpKind kind;
    void (*change)(RankCall&);
    const char* text;
  };
  const Row rows[] = {
      {OpKind::kAllReduce, [](RankCall& call) { call.count = 10; }, "(sum, 40 B float32)"},
      {OpKind::kAllReduce, [](RankCall& call) { call.type = DataType::kFloat16; },
       "(sum, 2.1 MB float16)"},
      {OpKind::kAllReduce, [](RankCall& call) { call.reduce = ReduceOp::kMax; },
       "(max, 4.2 MB float32)"},
      {OpKind::kBroadcast, [](RankCall& call) { call.root_or_peer = 2; },
       "(root 2, 4.2 MB float32)"},
      {OpKind::kReduce, [](RankCall& call) { call.root_or_peer = 1; },
       "(root 1, sum, 4.2 MB float32)"},
      {OpKind::kGather, [](RankCall& call) { call.root_or_peer = 1; }, "(root 1, 4.2 MB float32)"},
      {OpKind::kAllGather, [](RankCall& call) { call.type = DataType::kInt64; }, "(8.4 MB int64)"},
      {OpKind::kReduceScatter, [](RankCall& call) { call.count = 4; }, "(sum, 16 B float32)"},
      {OpKind::kAllToAll, [](RankCall& call) { call.kind = OpKind::kBarrier; }, "barrier #3 where"},
  };
  for (const Row& row : rows) {
    Pages pages(3);
    for (int rank = 0; rank < 3; ++rank)
      pages.in(rank, row.kind, 3, 20);
    row.change(pages.of(1).calls[0]);
    const std::string text = pages.text();
    CAPTURE(text);
    CHECK(text.starts_with("rank 1 called "));
    CHECK(text.find(row.text) != std::string::npos);
  }
}

TEST_CASE("sizes that may differ are no mismatch") {
  for (OpKind kind : {OpKind::kAllGather, OpKind::kAllToAll, OpKind::kScatter, OpKind::kGather}) {
    Pages pages(2);
    pages.in(0, kind, 3, 20);
    pages.in(1, kind, 3, 20).count = 7;
    CHECK(pages.find().found.at(0).kind == "stuck");
  }
}

TEST_CASE("a mismatch is seen when one of the two was done at once") {
  Pages pages(2);
  pages.in(0, OpKind::kAllReduce, 4, 20);
  pages.ended(1, OpKind::kBroadcast, 4, 20).root_or_peer = 1;
  pages.in(1, OpKind::kBarrier, 5, 20);
  CHECK(pages.texts().at(0) ==
        "rank 1 called broadcast #4 (root 1, 4.2 MB float32) where rank 0 called all_reduce #4 "
        "(sum, 4.2 MB float32)");
}

TEST_CASE("several camps of a mismatch are told one by one") {
  Pages pages(6);
  for (int rank : {0, 4, 5})
    pages.in(rank, OpKind::kAllReduce, 2, 20);
  pages.in(1, OpKind::kBarrier, 2, 20);
  pages.in(2, OpKind::kBarrier, 2, 20);
  pages.in(3, OpKind::kAllGather, 2, 20);
  CHECK(pages.text() ==
        "ranks 1-2 called barrier #2; rank 3 called all_gather #2 (4.2 MB float32) where ranks 0, "
        "4-5 called all_reduce #2 (sum, 4.2 MB float32)");
}

TEST_CASE("when all are in an operation, it is the operation that does not end") {
  Pages pages(4);
  for (int rank = 0; rank < 4; ++rank)
    pages.in(rank, OpKind::kBarrier, 3, 75);
  const auto all = pages.find();
  REQUIRE(all.found.size() == 1);
  CHECK(all.found[0].text == "all of ranks 0-3 are in barrier #3 since 75 s, and it does not end");
  CHECK(all.found[0].kind == "stuck");
  CHECK(all.found[0].bytes == -1);
  CHECK(all.found[0].suspects.empty());
}

TEST_CASE("those who have finished an operation are told apart from those who have not") {
  Pages pages(4);
  pages.ended(0, OpKind::kBroadcast, 3, 20);
  pages.ended(1, OpKind::kBroadcast, 3, 20);
  pages.in(2, OpKind::kBroadcast, 3, 20);
  pages.in(3, OpKind::kBroadcast, 3, 20);
  CHECK(pages.text() ==
        "ranks 2-3 wait since 20 s in broadcast #3 (4.2 MB, float32); ranks 0-1 have finished it");
}

TEST_CASE("who stands still in an operation that the others have got out of is suspected") {
  Pages pages(3);
  for (int rank : {0, 2}) {
    pages.ended(rank, OpKind::kAllReduce, 3, 17);
    pages.in(rank, OpKind::kAllReduce, 4, 17);
  }
  pages.in(1, OpKind::kAllReduce, 3, 17);
  const auto all = pages.find();
  REQUIRE(all.found.size() == 1);
  CHECK(all.found[0].suspects == "1");
  CHECK(all.found[0].waiting == "0,2");
  CHECK(all.found[0].text ==
        "rank 1 is still in all_reduce #3 (4.2 MB, float32) since 17 s; ranks 0, 2 have finished "
        "it and wait in a later one");
}

TEST_CASE("a rank that has ended keeps others waiting") {
  Pages pages = one_missing();
  pages.known(3).end = RankEnd::kFinished;
  CHECK(pages.text() ==
        "rank 3 ended without entering all_reduce #128 (4.2 MB, float32); ranks 0-2 wait since "
        "61 s");
}

TEST_CASE("of a rank that is gone and has told nothing only that is said") {
  Pages pages = one_missing();
  pages.known(3).operations = nullptr;
  struct Row {
    RankEnd end;
    const char* text;
  };
  const Row rows[] = {
      {RankEnd::kFinished,
       "rank 3 has ended; ranks 0-2 wait since 61 s in all_reduce #128 (4.2 MB, float32)"},
      {RankEnd::kDied,
       "rank 3 has died; ranks 0-2 wait since 61 s in all_reduce #128 (4.2 MB, float32)"},
      {RankEnd::kStopped,
       "ranks 0-2 wait since 61 s in all_reduce #128 (4.2 MB, float32); of 1 of its 4 ranks "
       "nothing is known"},
  };
  for (const Row& row : rows) {
    pages.known(3).end = row.end;
    CHECK(pages.text() == row.text);
  }
}

TEST_CASE("the ranks of a lost node may have been in what the others wait in") {
  Pages pages(8);
  for (int rank = 0; rank < 8; ++rank)
    pages.in(rank, OpKind::kAllReduce, 7, 0.5);
  for (int rank = 4; rank < 8; ++rank)
    pages.known(rank) = {rank, RankEnd::kDied, 0, nullptr};
  const auto all = pages.find();
  REQUIRE(all.found.size() == 1);
  CHECK(all.found[0].text ==
        "ranks 4-7 have died; ranks 0-3 wait since 500 ms in all_reduce #7 (4.2 MB, float32)");
  CHECK(all.found[0].suspects == "4-7");
}

TEST_CASE("a rank that ended after its part does not hide the one that is missing") {
  Pages pages(4);
  pages.known(0) = {0, RankEnd::kFinished, 0, nullptr};  // the root
  pages.in(1, OpKind::kBroadcast, 7, 61);
  pages.in(2, OpKind::kBroadcast, 7, 61);
  pages.ended(3, OpKind::kAllReduce, 6, 61);
  const auto all = pages.find();
  REQUIRE(all.found.size() == 1);
  CHECK(all.found[0].text ==
        "rank 3 never entered broadcast #7 (4.2 MB, float32) and is in no operation; its last, "
        "all_reduce #6, ended 61 s ago; rank 0 has ended; ranks 1-2 wait since 61 s");
  CHECK(all.found[0].suspects == "3");
}

TEST_CASE("who ended well weighs nothing while another is missing") {
  Pages pages(6);
  pages.known(0) = {0, RankEnd::kFinished, 0, nullptr};
  for (int rank : {1, 2})
    pages.in(rank, OpKind::kBroadcast, 7, 61);
  for (int rank : {3, 4, 5})
    pages.ended(rank, OpKind::kAllReduce, 6, 61);
  // Rank 3 waits for rank 4, which called something else: that explains more.
  for (int rank : {3, 4})
    pages.of(rank, 5, {3, 4}, "dp");
  pages.in(3, OpKind::kAllReduce, 1, 50, 5);
  pages.in(4, OpKind::kBarrier, 1, 50, 5);
  const auto all = pages.find();
  REQUIRE(all.found.size() == 2);
  CHECK(all.found[0].kind == "mismatch");
  CHECK(all.found[1].suspects == "3-5");
}

TEST_CASE("who is gone was in an operation that others have got out of") {
  Pages pages(4);
  pages.ended(0, OpKind::kAllReduce, 7, 61);
  pages.in(0, OpKind::kAllReduce, 8, 61);
  pages.in(1, OpKind::kAllReduce, 7, 61);
  pages.known(2) = {2, RankEnd::kFinished, 0, nullptr};
  pages.known(3) = {3, RankEnd::kDied, 0, nullptr};
  CHECK(pages.texts().at(0) ==
        "rank 1 is still in all_reduce #7 (4.2 MB, float32) since 61 s; rank 0 has finished it and "
        "waits in a later one");
  pages.of(0).calls.pop_back();
  CHECK(pages.text() ==
        "rank 1 waits since 61 s in all_reduce #7 (4.2 MB, float32); rank 0 has finished it; rank "
        "3 has died; rank 2 has ended");
}

TEST_CASE("an operation is named once among those who did not enter it") {
  Pages pages(5);
  pages.in(0, OpKind::kAllReduce, 9, 61);
  for (int rank = 1; rank < 5; ++rank)
    pages.of(rank);
  pages.died(2);
  pages.known(3).end = RankEnd::kFinished;
  pages.of(4).closed = true;
  CHECK(pages.text() ==
        "rank 1 never entered all_reduce #9 (4.2 MB, float32) and has entered no operation yet; "
        "rank 2 died before it entered it; rank 3 ended without entering it; rank 4 closed the "
        "communicator before it; rank 0 waits since 61 s");
}

TEST_CASE("a rank that ends while others are about to is no finding") {
  Pages pages = one_missing(0.5);
  pages.known(3).end = RankEnd::kFinished;
  CHECK(pages.texts().empty());
}

TEST_CASE("a rank that has closed the communicator keeps others waiting") {
  Pages pages = one_missing();
  pages.of(3).closed = true;
  CHECK(pages.text() ==
        "rank 3 closed the communicator before all_reduce #128 (4.2 MB, float32); ranks 0-2 wait "
        "since 61 s");
}

TEST_CASE("what failed in a communicator that was closed long ago is over") {
  Pages pages(3);
  pages.failed(0, OpKind::kAllReduce, 9, 5);
  pages.failed(1, OpKind::kAllReduce, 9, 5);
  pages.ended(2, OpKind::kAllReduce, 8, 5);
  for (int rank = 0; rank < 3; ++rank)
    pages.of(rank).closed = true;
  CHECK(pages.texts().size() == 1);  // just now: it may be why the job ends
  for (int rank = 0; rank < 3; ++rank)
    pages.known(rank).elapsed_us = 11 * kSecond;
  CHECK(pages.texts().empty());
}

TEST_CASE("a member that never made the communicator is told") {
  Pages pages(4);
  for (int rank : {0, 2}) {
    pages.of(rank, 5, {0, 2, 3}, "dp");
    pages.in(rank, OpKind::kBarrier, 1, 30, 5);
  }
  pages.of(3);
  CHECK(pages.text() ==
        "rank 3 never made the communicator of barrier #1 of \"dp\"; ranks 0, 2 wait since 30 s");
}

TEST_CASE("members that are not listed are counted") {
  Pages pages(3);
  for (int rank = 0; rank < 2; ++rank) {
    pages.of(rank).members.clear();
    pages.of(rank).size = 5;
    pages.in(rank, OpKind::kAllReduce, 3, 20);
  }
  CHECK(pages.text() ==
        "ranks 0-1 wait since 20 s in all_reduce #3 (4.2 MB, float32); of 3 of its 5 ranks nothing "
        "is known");
}

TEST_CASE("a straggler is seen by what it has not begun, behind the queues of the others") {
  Pages pages(3);
  for (int rank = 0; rank < 2; ++rank) {
    for (uint64_t sequence = 50; sequence < 56; ++sequence)
      pages.in(rank, OpKind::kAllReduce, sequence, 80 - static_cast<double>(sequence));
  }
  pages.ended(2, OpKind::kAllReduce, 49, 25);
  const auto all = pages.find();
  REQUIRE(all.found.size() == 1);
  CHECK(all.found[0].sequence == 50);
  CHECK(all.found[0].suspects == "2");
  CHECK(all.found[0].waited_us == 30 * kSecond);
}

TEST_CASE("of several communicators the one whose absentee is idle explains the others") {
  Pages pages(4);
  // Ranks 0 and 1 wait in the world for 2 and 3; 2 waits in a pair of its own for 3, which is away.
  for (int rank = 0; rank < 2; ++rank)
    pages.in(rank, OpKind::kAllReduce, 8, 90);
  for (int rank = 2; rank < 4; ++rank) {
    pages.ended(rank, OpKind::kAllReduce, 7, 90);
    pages.of(rank, 2, {2, 3}, "tp1");
  }
  pages.in(2, OpKind::kAllGather, 4, 80, 2);
  const auto texts = pages.texts();
  REQUIRE(texts.size() == 2);
  CHECK(texts[0] ==
        "rank 3 never entered all_gather #4 of \"tp1\" (4.2 MB, float32) and is in no operation; "
        "its last, all_reduce #7, ended 90 s ago; rank 2 waits since 80 s");
  CHECK(texts[1] ==
        "ranks 2-3 never entered all_reduce #8 (4.2 MB, float32); ranks 0-1 wait since 90 s");
}

TEST_CASE("large worlds are told in ranges") {
  Pages pages(1000);
  for (int rank = 0; rank < 1000; ++rank) {
    if (rank == 7 || rank == 500) {
      pages.of(rank);
    } else {
      pages.in(rank, OpKind::kAllReduce, 1, 700);
    }
  }
  const auto all = pages.find();
  REQUIRE(all.found.size() == 1);
  CHECK(all.found[0].text ==
        "ranks 7, 500 never entered all_reduce #1 (4.2 MB, float32) and each has entered no "
        "operation yet; ranks 0-6, 8-499, 501-999 wait since 11 min");
  CHECK(all.found[0].waiting == "0-6,8-499,501-999");
}

TEST_CASE("ranks that no range holds are cut in the text") {
  Pages pages(200);
  for (int rank = 0; rank < 200; ++rank) {
    pages.of(rank);
    if (rank % 2 == 0) pages.in(rank, OpKind::kAllReduce, 1, 20);
  }
  const auto all = pages.find();
  REQUIRE(all.found.size() == 1);
  CHECK(all.found[0].text.size() < 400);
  CHECK(all.found[0].text.find("... (100 in all)") != std::string::npos);
}

TEST_CASE("of very many findings the first are told and the rest counted") {
  Pages pages(100);
  for (int rank = 0; rank < 100; rank += 2) {
    const auto id = static_cast<uint64_t>(rank) + 10;
    for (int one : {rank, rank + 1})
      pages.of(one, id, {rank, rank + 1}, "pair");
    pages.in(rank, OpKind::kBarrier, 1, 20 + rank, id);
  }
  const auto all = pages.find();
  CHECK(all.found.size() == kMaxCollectiveFindings);
  CHECK(all.left_out == 50 - static_cast<int>(kMaxCollectiveFindings));
  CHECK(all.found[0].suspects == "99");  // waited for longest
}

TEST_CASE("ranks that tell nothing are no finding") {
  std::vector<KnownRank> ranks = {{0, RankEnd::kRunning, 0, nullptr},
                                  {1, RankEnd::kDied, 0, nullptr}};
  CHECK(find_collectives(ranks, kHangUs).found.empty());
  CHECK(find_collectives({}, kHangUs).found.empty());
}

TEST_CASE("pages that contradict each other are survived") {
  Pages pages(3);
  pages.in(0, OpKind::kAllReduce, 5, 20);
  pages.of(1).rank = 0;  // two claim the same place
  pages.in(1, OpKind::kBarrier, 900, 20);
  pages.of(2).size = 17;  // another size under the same id
  pages.in(2, OpKind::kRecv, 3, 20).root_or_peer = 16;
  CHECK(pages.find().found.size() <= 3);
}

}  // namespace muster
