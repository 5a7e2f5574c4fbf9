// SPDX-License-Identifier: Apache-2.0
#include "supervisor/stacks/stack_text.h"

#include <doctest/doctest.h>

#include "supervisor/stacks/stack_groups.h"

using namespace muster;

namespace {

using Lines = std::vector<std::string>;

RankView rank_in(int rank, char state, const std::string& channel, const std::string& call) {
  ThreadView thread;
  thread.tid = 100 + rank;
  thread.name = "python";
  thread.state = state;
  thread.wait_channel = channel;
  thread.system_call = call;
  RankView view;
  view.rank = rank;
  view.pid = 100 + rank;
  view.processes.push_back({100 + rank, "python", {thread}, 0, ""});
  return view;
}

}  // namespace

TEST_CASE("ranks that do the same are one line, and the odd one is named") {
  CHECK(group_lines({{0, "a"}, {1, "a"}, {2, "b"}, {3, "a"}}) ==
        Lines{"ranks 0-1, 3: a", "rank 2 differs: b"});
  CHECK(group_lines({{0, "a"}, {1, "a"}, {2, "a"}, {3, "b"}, {4, "b"}}) ==
        Lines{"ranks 0-2: a", "ranks 3-4 differ: b"});
}

TEST_CASE("of two halves neither is the odd one") {
  CHECK(group_lines({{0, "a"}, {1, "b"}}) == Lines{"rank 0: a", "rank 1: b"});
}

TEST_CASE("a rank of which nothing could be seen says so") {
  CHECK(group_lines({{0, "a"}, {1, "running: a"}, {2, "running: b"}, {3, "a"}}) ==
        Lines{"ranks 0-1, 3: a", "rank 2 differs: running: b"});
  CHECK(group_lines({{0, ""}}) == Lines{"rank 0: nothing could be seen"});
  CHECK(group_lines({}).empty());
}

TEST_CASE("lines and their lengths are bounded, and the rest is counted") {
  std::vector<RankActivity> ranks;
  ranks.reserve(100);
  for (int rank = 0; rank < 100; ++rank)
    ranks.push_back({rank, std::to_string(rank) + std::string(1'000, 'x')});
  const Lines lines = group_lines(ranks);
  CHECK(lines.size() == kMaxGroups);
  CHECK(lines.back() == "and 85 more groups");
  CHECK(lines.front().size() <= kMaxGroupText);
  CHECK(lines.front().size() > 300);
  std::vector<RankActivity> scattered;
  for (int rank = 0; rank < 1'000; rank += 2)
    scattered.push_back({rank, "x"});
  CHECK(group_lines(scattered).front().size() == kMaxGroupText);
}

TEST_CASE("the groups of several nodes are one set of groups") {
  event::EvidenceSaved a, b;
  a.groups = {"ranks 0-1, 3: a", "rank 2 differs: b: c"};
  b.groups = {"ranks 4-5: a", "rank 6: nothing could be seen"};
  CHECK(merged_groups({a, b}) == Lines{"ranks 0-1, 3-5: a", "rank 2 differs: b: c",
                                       "rank 6 differs: nothing could be seen"});
}

TEST_CASE("long texts of several nodes are alike however long the lists of their ranks are") {
  const std::string text(1'000, 'x');
  std::vector<event::EvidenceSaved> saved(3);
  for (int node = 0; node < 3; ++node) {
    std::vector<RankActivity> ranks;
    for (int rank = 0; rank < 4; ++rank)
      ranks.push_back({node == 2 ? 1'000 + 2 * rank : 4 * node + rank, text});
    saved[static_cast<size_t>(node)].groups = group_lines(ranks);
  }
  CHECK(merged_groups(saved).size() == 1);
  CHECK(odd_ranks(saved).ranks.empty());
}

TEST_CASE("lines of another's making are left out") {
  event::EvidenceSaved a;
  a.groups = {"",
              "rank",
              "rank x: a",
              "ranks 3-: a",
              "ranks 5-3: a",
              "ranks 0-2000000000: a",
              "ranks 1, : a",
              "ranks 1;2: a"};
  CHECK(merged_groups({a}).empty());
}

TEST_CASE("what a rank does is told by its main thread") {
  CHECK(activity(rank_in(0, 'S', "futex_wait_queue", "futex")) ==
        "asleep in futex_wait_queue (futex)");
  CHECK(activity(rank_in(0, 'R', "", "")) == "running");
  CHECK(activity(RankView{}).empty());
}

TEST_CASE("the file shows every thread with what is known of it") {
  RankView view = rank_in(3, 'D', "nfs_wait", "read");
  view.processes[0].threads[0].kernel = {"nfs_wait", "vfs_read"};
  view.processes[0].threads[0].native = {{"read", "libc.so.6", ""}, {"", "a.out", ""}};
  view.processes[0].threads_left_out = 2;
  view.processes_left_out = 1;
  CHECK(rank_text(view, "rank 3") ==
        "rank 3\n"
        "\n"
        "process 103 python\n"
        "  thread 103 python: stuck in the kernel in nfs_wait (read)\n"
        "    kernel: nfs_wait\n"
        "    kernel: vfs_read\n"
        "    #0 read in libc.so.6\n"
        "    #1 ? in a.out\n"
        "  and 2 more threads\n"
        "\n"
        "and 1 more processes\n");
}
