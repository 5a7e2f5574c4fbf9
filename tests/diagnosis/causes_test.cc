// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/causes.h"

#include <doctest/doctest.h>
#include <signal.h>

#include <string>
#include <utility>
#include <vector>

namespace muster {

namespace {

event::FailureFound failed(int rank, std::string kind = "exit_code") {
  event::FailureFound failure;
  failure.rank = rank;
  failure.pid = 100 + rank;
  failure.kind = std::move(kind);
  failure.exit_code = 1;
  failure.message = "message of " + std::to_string(rank);
  return failure;
}

event::FailureFound victim(int rank, std::string blames, std::string kind = "connection_lost") {
  event::FailureFound failure = failed(rank, std::move(kind));
  failure.victim = true;
  failure.blames = std::move(blames);
  failure.exit_code = 9;
  return failure;
}

// One that we stopped, and that had shown nothing.
event::FailureFound stopped(int rank, std::string kind = "") {
  event::FailureFound failure = failed(rank, std::move(kind));
  if (failure.kind.empty()) failure.message.clear();
  return failure;
}

struct Told {
  AttemptEnds ends;
  Told& dies(event::FailureFound failure) {
    ends.failures.push_back(std::move(failure));
    return *this;
  }
  Told& stops(event::FailureFound failure) {
    ends.stopped.push_back(std::move(failure));
    ++ends.still_running;
    return *this;
  }
  Told& finishes(int rank) {
    ends.finished.push_back(rank);
    return *this;
  }
  std::string causes() const { return ranks(find_causes(ends).independent); }
  std::string victims() const { return ranks(find_causes(ends).victims); }
  event::FailureFound root() const { return find_causes(ends).independent.at(0); }

 private:
  static std::string ranks(const std::vector<event::FailureFound>& failures) {
    std::string text;
    for (const event::FailureFound& failure : failures)
      text += (text.empty() ? "" : " ") + std::to_string(failure.rank);
    return text;
  }
};

}  // namespace

TEST_CASE("victims give way to whoever failed by himself, in whatever order they died") {
  const Told told = Told().dies(victim(0, "")).dies(victim(1, "0")).dies(failed(2)).dies(failed(5));
  CHECK(told.causes() == "2 5");
  CHECK(told.victims() == "0 1");
}

TEST_CASE("whoever is blamed counts from his first victim on") {
  CHECK(Told().dies(failed(5)).dies(victim(0, "2")).dies(failed(2)).causes() == "5 2");
  CHECK(Told().dies(victim(0, "2")).dies(failed(5)).dies(failed(2)).causes() == "2 5");
}

TEST_CASE("blame is followed through other victims, and a circle of them leads nowhere") {
  const Told chain =
      Told().dies(victim(0, "1")).dies(failed(4)).dies(victim(1, "3")).dies(failed(3));
  CHECK(chain.causes() == "3 4");
  const Told circle = Told().dies(victim(0, "1")).dies(victim(1, "0")).dies(victim(2, "2"));
  CHECK(circle.causes() == "0");
  CHECK(circle.victims() == "1 2");
}

TEST_CASE("whoever was stopped is the cause by what he had shown") {
  const Told told = Told().dies(victim(0, "2")).stops(stopped(1)).stops(stopped(2, "segfault"));
  CHECK(told.root().rank == 2);
  CHECK(told.root().kind == "segfault");
  CHECK(told.victims() == "0");
  CHECK_MESSAGE(Told().dies(failed(0)).stops(stopped(2, "segfault")).causes() == "0",
                "not if somebody else is");
}

TEST_CASE("victims that blame nobody lead to the one who had shown something") {
  const Told told = Told().dies(victim(0, "")).stops(stopped(1)).stops(stopped(2, "cpp_exception"));
  CHECK(told.causes() == "2");
}

TEST_CASE("a rank that was waited for in vain and still ran is hung") {
  event::FailureFound first = victim(0, "3", "store_timeout");
  first.line = "wait timeout after 300000ms, keys: /3";
  first.line_source = "stderr";
  const Told told =
      Told().dies(first).dies(victim(1, "3", "store_timeout")).stops(stopped(2)).stops(stopped(3));
  const event::FailureFound root = told.root();
  CHECK(root.rank == 3);
  CHECK(root.kind == "hung");
  CHECK(root.pid == 103);
  CHECK_MESSAGE(root.exit_code == 9, "what everybody saw");
  CHECK(root.message == "still running, but ranks 0-1 waited for it in vain: message of 0");
  REQUIRE(root.evidence.size() == 2);
  CHECK(root.evidence[0] == "rank 0, stderr: wait timeout after 300000ms, keys: /3");
  CHECK(root.evidence[1] == "rank 1: message of 1");
  CHECK(told.victims() == "0 1");
}

TEST_CASE("a connection that broke makes nobody hung who still ran") {
  const Told told = Told().dies(victim(0, "3")).stops(stopped(1)).stops(stopped(3));
  CHECK(told.root().rank == 0);
  CHECK(told.victims() == "");
}

TEST_CASE("the only rank that did not give up waiting is the one that did not come") {
  const Told told = Told()
                        .dies(victim(0, "", "collective_timeout"))
                        .dies(victim(2, "", "connection_lost"))
                        .stops(stopped(1));
  CHECK(told.root().rank == 1);
  CHECK(told.root().kind == "hung");
  CHECK_MESSAGE(Told().dies(victim(0, "", "collective_timeout"))
                        .stops(stopped(1))
                        .stops(stopped(2))
                        .root()
                        .rank == 0,
                "of two nobody knows");
  CHECK_MESSAGE(Told().dies(victim(0, "", "store_timeout")).stops(stopped(1)).root().rank == 0,
                "a key may be anybody's");
  CHECK_MESSAGE(Told().dies(victim(0, "", "store_timeout"))
                        .dies(victim(2, "", "store_timeout"))
                        .stops(stopped(1))
                        .root()
                        .rank == 1,
                "nobody else is left to write it");
}

TEST_CASE("a rank that returned while others needed it has finished early") {
  const Told told = Told().dies(victim(0, "3")).finishes(3).stops(stopped(1));
  CHECK(told.root().rank == 3);
  CHECK(told.root().kind == "finished_early");
  CHECK(told.root().message == "ended with code 0, but rank 0 still needed it: message of 0");
  CHECK(told.root().exit_code == 9);
  CHECK(Told().dies(victim(0, "", "gloo_error")).finishes(2).causes() == "2");
  CHECK_MESSAGE(Told().dies(victim(0, "")).finishes(2).causes() == "0",
                "a connection may be to anybody");
  CHECK_MESSAGE(Told().dies(failed(0)).finishes(2).causes() == "0", "it needed nobody");
}

TEST_CASE("a rank of which nothing is known is nobody's cause") {
  CHECK(Told().dies(victim(0, "7,9")).dies(victim(1, "not a rank")).causes() == "0");
}

TEST_CASE("who gave up in an operation blames the ranks that never came to it") {
  event::CollectivesFound collectives;
  collectives.found.resize(2);
  collectives.found[0].kind = "died";
  collectives.found[0].suspects = "9";
  collectives.found[0].waiting = "0-3";
  collectives.found[1].kind = "missing";
  collectives.found[1].suspects = "2";
  collectives.found[1].waiting = "0-1";
  std::vector<event::FailureFound> failures = {victim(0, "", "collective_timeout"),
                                               victim(1, "5", "collective_timeout"),
                                               victim(3, "", "collective_timeout"), victim(1, "")};
  blame_the_missing(failures, collectives);
  CHECK(failures[0].blames == "2");
  CHECK_MESSAGE(failures[1].blames == "5", "it knows better");
  CHECK_MESSAGE(failures[2].blames == "", "it was not in it");
  CHECK_MESSAGE(failures[3].blames == "", "it did not wait");
}

TEST_CASE("blamed ranks are bounded") {
  CHECK(blamed_ranks({victim(0, "1-2000000000"), failed(1)}).size() == kMaxBlamed);
  CHECK(blamed_ranks({failed(1)}).empty());
}

TEST_CASE("a victim's end is told in a few words") {
  event::FailureFound lost = victim(0, "1-3,5");
  CHECK(victim_text(lost) == "lost ranks 1-3, 5, exited with code 9");
  lost = victim(0, "", "nccl_timeout");
  lost.signal = SIGABRT;
  CHECK(victim_text(lost) == "waited for others, killed by SIGABRT");
}

}  // namespace muster
