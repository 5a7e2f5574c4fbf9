// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <errno.h>
#include <signal.h>

#include "supervisor/diagnosis/diagnose.h"

namespace muster {

namespace {

Evidence exited(int rank, int code) {
  Evidence evidence;
  evidence.rank = evidence.local_rank = rank;
  evidence.pid = 100 + rank;
  evidence.wait_status = code << 8;
  return evidence;
}

Evidence killed(int rank, int signal) {
  Evidence evidence = exited(rank, 0);
  evidence.wait_status = signal;
  return evidence;
}

Evidence stopped(Evidence evidence, StopReason reason = StopReason::kFailure) {
  evidence.stopped_for = reason;
  evidence.stop_signal = SIGTERM;
  return evidence;
}

}  // namespace

TEST_CASE("the first death in the loop's order is the root cause, not the lowest rank") {
  std::vector<Evidence> deaths = {exited(2, 0), exited(1, 3), stopped(exited(0, 7))};
  auto verdict = judge(deaths);
  REQUIRE(verdict);
  CHECK(verdict->root.rank == 1);
  CHECK(verdict->root.exit_code == 3);
  CHECK(verdict->root_index == 1);
  CHECK(verdict->others.empty());
  CHECK(verdict->victims == std::vector<size_t>{2});
}

TEST_CASE("who only lost a peer is not the root cause if somebody failed by himself") {
  Evidence lost = exited(0, 1);
  lost.error_file_present = true;
  lost.error_file_text =
      R"({"message": {"message": "E: peer", "extraInfo": {"comm_error": "peer_lost"}}})";
  Evidence broken = exited(2, 1);  // only its page tells
  broken.broken_operation = true;
  std::vector<Evidence> deaths = {lost, broken, killed(3, SIGKILL), exited(1, 7)};
  auto verdict = judge(deaths);
  REQUIRE(verdict);
  CHECK(verdict->root.rank == 3);
  CHECK(verdict->root_index == 2);
  REQUIRE(verdict->others.size() == 3);
  CHECK(verdict->others[0].rank == 0);
  CHECK(verdict->others[0].comm_error == "peer_lost");
  CHECK(verdict->others[1].rank == 2);
  CHECK(verdict->others[1].comm_error == "operation_failed");
  CHECK(verdict->others[2].rank == 1);
}

TEST_CASE("who gave up by a deadline stays the root cause, and so does the first of lost peers") {
  Evidence late = exited(0, 1);
  late.error_file_present = true;
  late.error_file_text =
      R"({"message": {"message": "E: late", "extraInfo": {"comm_error": "timeout"}}})";
  late.broken_operation = true;
  CHECK(judge(std::vector<Evidence>{late, exited(1, 3)})->root.rank == 0);
  Evidence first = exited(4, 1), second = exited(5, 1);
  first.broken_operation = second.broken_operation = true;
  CHECK(judge(std::vector<Evidence>{first, second})->root.rank == 4);
  // A signal is no lost peer.
  Evidence crashed = killed(6, SIGSEGV);
  crashed.broken_operation = true;
  CHECK(judge(std::vector<Evidence>{crashed, exited(1, 3)})->root.rank == 6);
}

TEST_CASE("an error file with an older clock does not change the culprit") {
  Evidence late = exited(0, 5);
  late.error_file_present = true;
  late.error_file_text = R"({"message": {"message": "E: x", "extraInfo": {"timestamp": "1"}}})";
  std::vector<Evidence> deaths = {exited(1, 3), late};
  auto verdict = judge(deaths);
  REQUIRE(verdict);
  CHECK(verdict->root.rank == 1);
  REQUIRE(verdict->others.size() == 1);
  CHECK(verdict->others[0].rank == 0);
}

TEST_CASE("deaths that we did not cause are causes of their own, first first") {
  std::vector<Evidence> deaths = {killed(3, SIGSEGV), exited(1, 4), stopped(killed(0, SIGTERM)),
                                  stopped(killed(2, SIGKILL))};
  auto verdict = judge(deaths);
  REQUIRE(verdict);
  CHECK(verdict->root.kind == "segfault");
  REQUIRE(verdict->others.size() == 1);
  CHECK(verdict->others[0].exit_code == 4);
  CHECK(verdict->victims == std::vector<size_t>{2, 3});
}

TEST_CASE("whoever crashes in its teardown after our signal is a victim") {
  CHECK(is_victim(stopped(killed(0, SIGABRT))));
  CHECK(is_victim(stopped(exited(0, 0))));
  CHECK(is_victim(stopped(exited(0, 1), StopReason::kSignal)));
  CHECK_FALSE(is_victim(killed(0, SIGTERM)));
}

TEST_CASE("nobody is guilty when all finished or all were stopped") {
  std::vector<Evidence> finished = {exited(0, 0), exited(1, 0)};
  CHECK_FALSE(judge(finished));
  std::vector<Evidence> by_user = {stopped(killed(0, SIGTERM), StopReason::kSignal),
                                   stopped(exited(1, 1), StopReason::kSignal)};
  CHECK_FALSE(judge(by_user));
  CHECK_FALSE(judge({}));
}

TEST_CASE("a worker that could not be started is a root cause even while others are stopped") {
  Evidence missing = stopped(exited(1, 0));
  missing.pid = 0;
  missing.spawn_errno = ENOENT;
  std::vector<Evidence> deaths = {missing, stopped(killed(0, SIGTERM))};
  auto verdict = judge(deaths);
  REQUIRE(verdict);
  CHECK(verdict->root.kind == "exec_not_found");
  CHECK(verdict->victims == std::vector<size_t>{1});
}

}  // namespace muster
