// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/report.h"

#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>

#include "job/job_story.h"
#include "supervisor/diagnosis/diagnose.h"

namespace muster {

namespace {

const LogPath kPaths = [](int attempt, int local_rank, Stream stream) {
  return "/runs/4f1c/attempt_" + std::to_string(attempt) + "/" + std::to_string(local_rank) +
         (stream == Stream::kStdout ? "/stdout.log" : "/stderr.log");
};

std::string report(const JobStory& story) {
  std::string text;
  for (const std::string& line : final_report(story.state, kPaths))
    text += line + "\n";
  return text;
}

bool has(const std::string& text, std::string_view part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

event::FailureFound exception_of(const JobStory& story, int rank, size_t lines = 4) {
  event::FailureFound found = story.failure(rank, "ValueError: bad shape (train.py:41)");
  found.kind = "python_exception";
  found.exit_code = 1;
  found.excerpt = {"Traceback (most recent call last):"};
  while (found.excerpt.size() + 1 < lines) {
    found.excerpt.push_back("  File \"train.py\", line " + std::to_string(found.excerpt.size()) +
                            ", in f");
  }
  found.excerpt.push_back("ValueError: bad shape");
  found.excerpt_source = "stderr";
  return found;
}

}  // namespace

TEST_CASE("what the workers were doing is told after the evidence, the cause first") {
  JobStory story;
  story.start(4).start_attempt(4);
  story.after_ms(5'000).exits(0, 1 << 8);
  story.say(story.failure(0, "all_reduce: not done in 60 s"));
  event::CollectivesFound found;
  for (const char* text : {"rank 3 never entered all_reduce #128 (4.2 MB, float32)", "b", "c", "d"})
    found.found.emplace_back().text = text;
  story.say(found);
  story.ends(Outcome::kFailed, 1);
  std::string all;
  for (const std::string& line : final_report(story.state, kPaths))
    all += line + "\n";
  CHECK(all.find("  operations   rank 3 never entered all_reduce #128 (4.2 MB, float32)\n"
                 "               b\n"
                 "               c\n") != std::string::npos);
}

TEST_CASE("a failed job is explained from the culprit down to what is left") {
  JobStory story;
  story.start(8).start_attempt(8).after_ms(751'000).exits(1, 256);
  for (int i : {0, 2, 3, 4, 5, 6, 7})
    story.stops(i, SIGTERM).exits(i, SIGTERM);
  story.say(exception_of(story, 1));
  story.say(event::RestartDenied{0, "no restart was allowed (--max-restarts 0)"});
  story.ends(Outcome::kFailed, 1);
  CHECK(report(story) ==
        "muster: rank 1 (local 1) on node-a failed after 00:12:31 · ValueError: bad shape "
        "(train.py:41)\n"
        "  root cause   rank 1 pid 1001 attempt 0 2026-11-29T12:12:31.000Z · python_exception\n"
        "  traceback    Traceback (most recent call last):\n"
        "                 File \"train.py\", line 1, in f\n"
        "                 File \"train.py\", line 2, in f\n"
        "               ValueError: bad shape\n"
        "  victims      ranks 0, 2-7 (stopped by muster)\n"
        "  restarts     0 of 0 used · no restart was allowed (--max-restarts 0)\n"
        "  logs         /runs/4f1c/attempt_0/1/stderr.log\n"
        "               /runs/4f1c/attempt_0/1/stdout.log\n"
        "  run folder   /runs/4f1c\n"
        "  page         muster view /runs/4f1c\n"
        "  nothing left running\n");
}

TEST_CASE("success is one line") {
  JobStory story;
  story.start(4).start_attempt(4).after_ms(62'000);
  for (int i = 0; i < 4; ++i)
    story.exits(i, 0);
  story.ends(Outcome::kSucceeded, 0);
  CHECK(report(story) == "muster: 4 workers finished in 00:01:02 · logs /runs/4f1c\n");
}

TEST_CASE("success after restarts and with ended descendants says so") {
  JobStory story;
  story.start(1, 2, "").start_attempt(1).exits(0, 256).say(story.failure(0));
  story.say(event::RestartScheduled{1, 1, 2, true}).start_attempt(1).exits(0, 0);
  story.say(event::LeftoverFound{77, "sleep 99", "S", "", true, "ended"})
      .ends(Outcome::kSucceeded, 0);
  CHECK(report(story) ==
        "muster: 1 worker finished in 0 ms · after 1 restart\n"
        "  nothing left running (1 descendant had to be ended: pid 77 sleep 99)\n");
}

TEST_CASE("a stop by signal names the signal and its sender, and how the workers ended") {
  JobStory story;
  story.start(4).start_attempt(4).after_ms(62'000);
  story.say(event::SignalReceived{SIGTERM, 123, 1000, "alice, scancel", false, ""});
  for (int i = 0; i < 4; ++i)
    story.stops(i, SIGTERM, StopReason::kSignal);
  for (int i = 0; i < 3; ++i)
    story.exits(i, SIGTERM);
  story.exits(3, 0).ends(Outcome::kStopped, 143);
  CHECK(report(story) ==
        "muster: stopped after 00:01:02 by SIGTERM from pid 123 (alice, scancel)\n"
        "  workers      ranks 0-2 killed by SIGTERM (signal 15); rank 3 exited with code 0\n"
        "  restarts     0 of 0 used\n"
        "  run folder   /runs/4f1c\n"
        "  nothing left running\n");
}

TEST_CASE("a program that cannot be started is the headline") {
  JobStory story;
  story.start(3, 2).start_attempt(0, 3).say(event::SpawnFailed{0, 0, 0, 2, "nope: not found"});
  event::FailureFound found = story.failure(0, "nope: not found in PATH");
  found.pid = 0;
  found.kind = "exec_not_found";
  found.can_heal = false;
  story.say(found).say(event::RestartDenied{0, "not retried: it cannot heal"});
  story.ends(Outcome::kFailed, 127);
  std::string text = report(story);
  CHECK(text.starts_with(
      "muster: rank 0 (local 0) on node-a could not be started · nope: not found in PATH\n"));
  CHECK(has(text, "not started  ranks 1-2\n"));
  CHECK(has(text, "0 of 2 used · not retried: it cannot heal\n"));
}

TEST_CASE("victims that ended in another way than told are set apart") {
  JobStory story;
  story.start(5).start_attempt(5).exits(4, 256);
  for (int i = 0; i < 4; ++i)
    story.stops(i, SIGTERM);
  story.exits(0, SIGTERM).exits(1, 7 << 8).exits(2, SIGABRT).stops(3, SIGKILL).exits(3, SIGKILL);
  story.say(story.failure(4)).ends(Outcome::kFailed, 3);
  CHECK(has(report(story),
            "victims      rank 0 (stopped by muster); rank 1 (stopped by muster, exited with code "
            "7); rank 2 (stopped by muster, killed by SIGABRT (signal 6)); rank 3 (stopped by "
            "muster, which had to kill it)\n"));
}

TEST_CASE("independent causes and earlier attempts are listed") {
  JobStory story;
  story.start(3, 1).start_attempt(3).say(story.failure(2, "killed by SIGSEGV (signal 11)"));
  story.say(event::RestartScheduled{1, 1, 1, true}).start_attempt(3).exits(0, 768).exits(1, 512);
  story.say(story.failure(0)).say(story.failure(1, "exited with code 2"));
  story.ends(Outcome::kFailed, 3);
  std::string text = report(story);
  CHECK(has(text, "also failed  rank 1 pid 1101 · exited with code 2\n"));
  CHECK(has(text, "1 of 1 used\n"));
  CHECK(has(text, "attempt 0  rank 2 · killed by SIGSEGV (signal 11)\n"));
}

TEST_CASE("the line that shows it and what else was found stand below the excerpt") {
  JobStory story;
  story.start(1).start_attempt(1).exits(0, 137 << 8);
  event::FailureFound found = story.failure(0, "killed by SIGKILL (signal 9): out of memory");
  found.kind = "oom_kill";
  found.excerpt = {"epoch 3"};
  found.excerpt_source = "stderr";
  found.line = "Out of memory: Killed process 1000 (python3)";
  found.line_source = "kernel log";
  found.evidence = {"one", "two", "three", "four", "five", "six"};
  story.say(found).ends(Outcome::kFailed, 137);
  CHECK(has(report(story),
            "  last output  epoch 3\n"
            "  shown by     kernel log: Out of memory: Killed process 1000 (python3)\n"
            "  evidence     one\n"
            "               two\n"
            "               three\n"
            "               four\n"
            "               and 2 more in summary.json\n"));
}

TEST_CASE("the last lines of both streams are shown where no line tells what happened") {
  JobStory story;
  story.start(1).start_attempt(1).exits(0, 3 << 8);
  event::FailureFound found = story.failure(0);
  found.evidence = {"one",
                    "two",
                    "three",
                    "four",
                    "five",
                    std::string(kLastLinesHeading),
                    "stdout: step 1",
                    "stderr: a warning"};
  JobStory told = story;
  found.line = "ValueError: bad shape";
  found.kind = "python_exception";
  CHECK_FALSE(has(report(told.say(found).ends(Outcome::kFailed, 3)), "step 1"));
  CHECK(has(report(told), "               and 1 more in summary.json\n"));
  found.kind = "exit_code";
  CHECK(has(report(story.say(found).ends(Outcome::kFailed, 3)),
            "               four\n"
            "               and 1 more in summary.json\n"
            "               last lines of both streams, in the order in which they came:\n"
            "               stdout: step 1\n"
            "               stderr: a warning\n"));
}

TEST_CASE("a line that the reader sees anyway is not repeated") {
  JobStory story;
  story.start(1).start_attempt(1).exits(0, 256);
  event::FailureFound found = exception_of(story, 0);
  found.line = "ValueError: bad shape";
  found.line_source = "stderr";
  story.say(found).ends(Outcome::kFailed, 1);
  CHECK_FALSE(has(report(story), "shown by"));
}

TEST_CASE("who fell by what another did is among the victims, of one node too") {
  JobStory story;
  story.start(4).start_attempt(4).exits(0, 256).exits(1, 256).exits(2, 768);
  story.stops(3, SIGTERM).exits(3, SIGTERM).say(story.failure(2));
  for (int rank : {0, 1}) {
    event::FailureFound victim = story.failure(rank, "Connection closed by peer");
    victim.victim = true;
    story.say(victim);
  }
  story.say(event::VictimsFound{
      0, {{"3", "stopped by muster"}, {"0-1", "lost others, exited with code 1"}}});
  std::string text = report(story.ends(Outcome::kFailed, 3));
  CHECK(has(text,
            "  victims      rank 3 (stopped by muster); ranks 0-1 (lost others, exited with code "
            "1)\n"));
  CHECK_FALSE(has(text, "also failed"));
}

TEST_CASE("stacks of one that hangs are called so, and it is no victim") {
  JobStory story;
  story.start(2).start_attempt(2).stops(0, SIGTERM).stops(1, SIGABRT);
  story.exits(0, SIGTERM).exits(1, SIGABRT);
  event::FailureFound found = story.failure(1, "rank 1 differs: load");
  found.kind = "hung";
  found.excerpt = {"rank 0: recv", "rank 1: load"};
  found.excerpt_source = "stacks";
  const std::string text = report(story.say(found).ends(Outcome::kFailed, 1));
  CHECK(has(text, "  stacks       rank 0: recv\n               rank 1: load\n"));
  CHECK(has(text, "  victims      rank 0 (stopped by muster)\n"));
}

TEST_CASE("a lost node beside the root is named as a node") {
  JobStory story;
  story.start(2).start_attempt(2).exits(0, 768).say(story.failure(0));
  event::FailureFound lost;
  lost.attempt = 0;
  lost.rank = -1;
  lost.node = 1;
  lost.kind = "node_lost";
  lost.message = "node-b was lost: its connection was closed";
  std::string text = report(story.say(lost).ends(Outcome::kFailed, 3));
  CHECK(has(text, "also failed  node 1 · node-b was lost: its connection was closed\n"));
}

TEST_CASE("a rank that others waited for has failed, even if its pid is not known here") {
  JobStory story;
  story.start(2).start_attempt(2).exits(0, 256);
  event::FailureFound found = story.failure(1, "still running, but rank 0 waited for it in vain");
  found.kind = "hung";
  found.pid = 0;
  std::string text = report(story.say(found).ends(Outcome::kFailed, 1));
  CHECK(has(text, "rank 1 (local 1) on node-a failed after 0 ms · still running, but rank 0"));
}

TEST_CASE("what is still running is the last line") {
  JobStory story;
  story.start(1).start_attempt(1).exits(0, 256).say(story.failure(0));
  story.say(event::LeftoverFound{77, "dd of=/nfs/x", "D", "nfs_wait_bit", false, "does not die"});
  story.ends(Outcome::kFailed, 1);
  CHECK(report(story).ends_with(
      "  still running: pid 77 dd of=/nfs/x in state D (nfs_wait_bit): does not die\n"));
}

TEST_CASE("a culprit that hangs and cannot be ended is told with the time it ran") {
  JobStory story;
  story.start(1).start_attempt(1).after_ms(5000).stops(0, SIGKILL);
  event::FailureFound found = story.failure(0, "stuck in uninterruptible sleep for 2 s");
  found.kind = "hung";
  story.say(found).say(
      event::LeftoverFound{1000, "dd", "D", "nfs_wait", false, "cannot be killed"});
  std::string text = report(story.ends(Outcome::kFailed, 1));
  CHECK(text.starts_with("muster: rank 0 (local 0) on node-a failed after 5.0 s · stuck in"));
  CHECK(has(text, "2026-11-29T12:00:05.000Z"));
}

TEST_CASE("a failure without a culprit still says what is known") {
  JobStory story;
  story.start(1).start_attempt(1).say(event::Trouble{"guard", "the front was killed"});
  story.ends(Outcome::kFailed, 1);
  CHECK(report(story).starts_with("muster: failed after 0 ms · guard: the front was killed\n"));
  JobState nothing;
  CHECK_FALSE(final_report(nothing, nullptr).empty());
}

TEST_CASE("the report never has more than 25 lines and gives the excerpt what is left") {
  JobStory story;
  story.start(300, 5);
  for (int i = 0; i < 5; ++i) {
    story.start_attempt(300).say(exception_of(story, i));
    story.say(event::RestartScheduled{i + 1, i + 1, 5, true});
  }
  story.start_attempt(300);
  for (int i = 0; i < 300; ++i)
    story.exits(i, ((i % 250) + 1) << 8);
  event::FailureFound root = exception_of(story, 0, 500);
  root.excerpt[499] = std::string(100'000, 'x');
  root.message = std::string(10'000, 'm');
  root.note = std::string(10'000, 'n');
  story.say(root);
  for (int i = 1; i < 300; ++i)
    story.say(story.failure(i));
  for (int i = 0; i < 50; ++i)
    story.say(event::Trouble{"store", "trouble\nwith newline"});
  for (int i = 0; i < 50; ++i) {
    story.say(event::LeftoverFound{i + 1, std::string(500, 'c'), "D", "w", false, "does not die"});
  }
  story.ends(Outcome::kFailed, 1);
  std::vector<std::string> lines = final_report(story.state, kPaths);
  CHECK(lines.size() == kMaxReportLines);
  for (const std::string& line : lines) {
    CHECK(line.size() < 1300);
    CHECK(line.find('\n') == std::string::npos);
  }
  std::string text = report(story);
  CHECK(has(text, "Traceback (most recent call last):"));
  CHECK(has(text, "lines left out"));
  CHECK(has(text, "and ranks 4-299"));
  CHECK(has(text, "still running: pid 1 ccc"));
}

TEST_CASE("a cut traceback keeps its header and its end and counts what is missing") {
  JobStory story;
  story.start(1).start_attempt(1).exits(0, 256);
  story.say(exception_of(story, 0, 100)).ends(Outcome::kFailed, 1);
  std::vector<std::string> lines = final_report(story.state, kPaths);
  REQUIRE(lines.size() == kMaxReportLines);
  auto mark = std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find("lines left out") != std::string::npos;
  });
  REQUIRE(mark != lines.end());
  // 25 lines: 8 others, header, mark and 15 of the traceback's 100.
  CHECK(mark->find("... 84 lines left out ...") != std::string::npos);
  CHECK((mark - 1)->find("Traceback") != std::string::npos);
  CHECK((mark + 1)->find("line 85,") != std::string::npos);
}

TEST_CASE("the end of plain output is kept when it must be cut") {
  JobStory story;
  story.start(1).start_attempt(1).exits(0, 768);
  event::FailureFound found = story.failure(0);
  for (int i = 0; i < 60; ++i)
    found.excerpt.push_back("line " + std::to_string(i));
  story.say(found).ends(Outcome::kFailed, 3);
  std::string text = report(story);
  CHECK(has(text, "last output  line "));
  CHECK(has(text, "               line 59\n"));
}

}  // namespace muster
