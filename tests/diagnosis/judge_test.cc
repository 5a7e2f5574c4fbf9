// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/judge.h"

#include <doctest/doctest.h>
#include <errno.h>
#include <signal.h>

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
  const AttemptEnds ends = judge(std::vector{exited(2, 0), exited(1, 3), stopped(exited(0, 7))});
  REQUIRE(ends.failures.size() == 1);
  CHECK(ends.failures[0].rank == 1);
  CHECK(ends.failures[0].exit_code == 3);
  REQUIRE(ends.stopped.size() == 1);
  CHECK(ends.stopped[0].rank == 0);
  CHECK(ends.stopped[0].kind == "");
  CHECK(find_causes(ends).independent.at(0).rank == 1);
}

TEST_CASE("who only lost a peer is not the root cause if somebody failed by himself") {
  Evidence lost = exited(0, 1);
  lost.error_file_present = true;
  lost.error_file_text =
      R"({"message": {"message": "E: peer", "extraInfo": {"comm_error": "peer_lost"}}})";
  Evidence broken = exited(2, 1);  // only its page tells
  broken.broken_operation = true;
  const Causes causes =
      find_causes(judge(std::vector{lost, broken, killed(3, SIGKILL), exited(1, 7)}));
  REQUIRE(causes.independent.size() == 2);
  CHECK(causes.independent[0].rank == 3);
  CHECK(causes.independent[1].rank == 1);
  REQUIRE(causes.victims.size() == 2);
  CHECK(causes.victims[0].rank == 0);
  CHECK(causes.victims[0].comm_error == "peer_lost");
  CHECK(causes.victims[1].rank == 2);
  CHECK(causes.victims[1].comm_error == "operation_failed");
}

TEST_CASE("of lost peers alone the first is the root cause, and a signal is no lost peer") {
  Evidence first = exited(4, 1), second = exited(5, 1);
  first.broken_operation = second.broken_operation = true;
  const Causes causes = find_causes(judge(std::vector{first, second}));
  REQUIRE(causes.independent.size() == 1);
  CHECK(causes.independent[0].rank == 4);
  REQUIRE(causes.victims.size() == 1);
  CHECK(causes.victims[0].victim);
  Evidence crashed = killed(6, SIGSEGV);
  crashed.broken_operation = true;
  CHECK(find_causes(judge(std::vector{crashed, exited(1, 3)})).independent.at(0).rank == 6);
}

TEST_CASE("an error file with an older clock does not change the culprit") {
  Evidence late = exited(0, 5);
  late.error_file_present = true;
  late.error_file_text = R"({"message": {"message": "E: x", "extraInfo": {"timestamp": "1"}}})";
  const AttemptEnds ends = judge(std::vector{exited(1, 3), late});
  REQUIRE(ends.failures.size() == 2);
  CHECK(ends.failures[0].rank == 1);
}

TEST_CASE("deaths that we did not cause are causes of their own, first first") {
  const AttemptEnds ends = judge(std::vector{
      killed(3, SIGSEGV), exited(1, 4), stopped(killed(0, SIGTERM)), stopped(killed(2, SIGKILL))});
  REQUIRE(ends.failures.size() == 2);
  CHECK(ends.failures[0].kind == "segfault");
  CHECK(ends.failures[1].exit_code == 4);
  CHECK(ends.stopped.size() == 2);
}

TEST_CASE("whoever crashes in its teardown after our signal is a victim") {
  CHECK(is_victim(stopped(killed(0, SIGABRT))));
  CHECK(is_victim(stopped(exited(0, 0))));
  CHECK(is_victim(stopped(exited(0, 1), StopReason::kSignal)));
  CHECK_FALSE(is_victim(killed(0, SIGTERM)));
}

TEST_CASE("whoever had raised before our signal cut its end short shows that") {
  Evidence unwinding = stopped(killed(2, SIGTERM));
  unwinding.stderr_tail =
      "Traceback (most recent call last):\n"
      "  File \"train.py\", line 41, in <module>\n"
      "    step()\n"
      "ValueError: loss is NaN\n";
  const AttemptEnds ends = judge(std::vector{unwinding, stopped(killed(3, SIGSEGV))});
  REQUIRE(ends.stopped.size() == 2);
  CHECK(ends.stopped[0].kind == "python_exception");
  CHECK(ends.stopped[0].message == "ValueError: loss is NaN (train.py:41)");
  CHECK(ends.stopped[0].note.ends_with("it had not ended when muster stopped it"));
  CHECK(ends.stopped[1].kind == "segfault");
}

TEST_CASE("what our signal makes a worker do shows nothing of its own") {
  Evidence interrupted = stopped(killed(2, SIGINT));
  interrupted.stop_signal = SIGINT;
  interrupted.stderr_tail =
      "Traceback (most recent call last):\n"
      "  File \"train.py\", line 41, in <module>\n"
      "    step()\n"
      "KeyboardInterrupt\n";
  Evidence preempted = stopped(exited(5, 1));  // its handler raised
  preempted.stderr_tail =
      "Traceback (most recent call last):\n"
      "  File \"train.py\", line 7, in save_and_end\n"
      "RuntimeError: received SIGTERM\n";
  const AttemptEnds ends =
      judge(std::vector{interrupted, stopped(exited(1, 143)), stopped(killed(3, SIGABRT)),
                        stopped(exited(4, 0)), preempted});
  REQUIRE(ends.stopped.size() == 5);
  for (const event::FailureFound& one : ends.stopped)
    CHECK(one.kind == "");
}

TEST_CASE("nobody is guilty when all finished or all were stopped") {
  CHECK(find_causes(judge(std::vector{exited(0, 0), exited(1, 0)})).independent.empty());
  CHECK(find_causes(judge(std::vector{stopped(killed(0, SIGTERM), StopReason::kSignal),
                                      stopped(killed(1, SIGSEGV), StopReason::kSignal)}))
            .independent.empty());
  CHECK(find_causes({}).independent.empty());
}

TEST_CASE("a worker that could not be started is a root cause even while others are stopped") {
  Evidence missing = stopped(exited(1, 0));
  missing.pid = 0;
  missing.spawn_errno = ENOENT;
  const AttemptEnds ends = judge(std::vector{missing, stopped(killed(0, SIGTERM))});
  REQUIRE(ends.failures.size() == 1);
  CHECK(ends.failures[0].kind == "exec_not_found");
}

}  // namespace muster
