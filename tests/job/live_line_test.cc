// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <signal.h>

#include "job/job_story.h"
#include "supervisor/job/recorder.h"
#include "supervisor/job/report.h"

namespace muster {

namespace {

std::string live(const JobStory& story) {
  return live_line(story.state, story.last()).value_or("(silent)");
}

}  // namespace

TEST_CASE("the first death is said at once with what follows from it") {
  JobStory story;
  story.start(4).start_attempt(4).after_ms(12'000).exits(1, 3 << 8);
  CHECK(live(story) == "rank 1 (pid 1001) exited with code 3 after 12.0 s; stopping 3 others");
  story.after_ms(1).exits(2, SIGSEGV);
  CHECK(live(story) == "rank 2 (pid 1002) killed by SIGSEGV (signal 11) after 12.0 s");
}

TEST_CASE("those that obey our stop are silent, those that do not are named") {
  JobStory story;
  story.start(3).start_attempt(3).exits(0, 256).stops(1, SIGTERM);
  CHECK(live(story) == "(silent)");
  story.exits(1, SIGTERM);
  CHECK(live(story) == "(silent)");
  story.stops(2, SIGTERM).stops(2, SIGKILL);
  CHECK(live(story) == "rank 2 (pid 1002) did not stop; killing it");
  story.exits(2, SIGKILL).stops(2, SIGKILL);
  CHECK(live(story) == "(silent)");
}

TEST_CASE("many workers that do not stop take one line") {
  JobStory story;
  story.start(64).start_attempt(64).exits(0, 256);
  for (int rank = 1; rank < 64; ++rank)
    story.stops(rank, SIGTERM);
  story.stops(1, SIGKILL);
  CHECK(live(story) == "ranks 1-63 did not stop; killing them");
  story.stops(2, SIGKILL);
  CHECK(live(story) == "(silent)");
}

TEST_CASE("the cause is said at once while others are still being stopped") {
  JobStory story;
  story.start(3).start_attempt(3).exits(1, 3 << 8).stops(0, SIGTERM).stops(2, SIGTERM);
  story.exits(0, SIGTERM).say(story.failure(1, "exited with code 3: no shard left"));
  CHECK(live(story) == "cause: rank 1: exited with code 3: no shard left");
  story.say(story.failure(0));
  CHECK_MESSAGE(live(story) == "(silent)", "only the cause");

  JobStory done;
  done.start(2).start_attempt(2).exits(1, 3 << 8).stops(0, SIGTERM).exits(0, SIGTERM);
  done.say(done.failure(1));
  CHECK_MESSAGE(live(done) == "(silent)", "the report follows");
}

TEST_CASE("the start says what runs and where its logs are") {
  JobStory story;
  CHECK(live(story.start(2)) == "run 4f1c · 1 node · 2 workers · logs /runs/4f1c");
  JobStory without_logs;
  CHECK(live(without_logs.start(1, 0, "")) == "run 4f1c · 1 node · 1 worker");
}

TEST_CASE("an ordinary life is silent") {
  JobStory story;
  story.start(2);
  story.start_attempt(2);
  CHECK(live(story) == "(silent)");
  story.exits(0, 0);
  CHECK(live(story) == "(silent)");
}

TEST_CASE("a program that cannot be started is said") {
  JobStory story;
  story.start(1).start_attempt(0).say(event::SpawnFailed{0, 0, 0, 2, "nope: not found"});
  CHECK(live(story) == "rank 0 could not be started: nope: not found");
}

TEST_CASE("signals to muster are said with their sender") {
  JobStory story;
  story.start(2).start_attempt(2);
  story.say(event::SignalReceived{SIGTERM, 123, 1000, "alice, scancel", false, ""});
  CHECK(live(story) == "got SIGTERM from pid 123 (alice, scancel); stopping 2 workers");
  story.say(event::SignalReceived{SIGINT, 0, 0, "", false, ""});
  CHECK(live(story) ==
        "got SIGINT from the terminal; stopping 2 workers (once more kills at once)");
  story.say(event::SignalReceived{SIGTERM, 0, 0, "outside the container", false, ""});
  CHECK(live(story) == "got SIGTERM from outside the container; stopping 2 workers");
  story.say(event::SignalReceived{SIGUSR1, 123, 1000, "", true, ""});
  CHECK(live(story) == "SIGUSR1 passed on to the workers");
  story.say(event::SignalReceived{SIGINT, 0, 0, "", false, ""});
  CHECK(live(story) == "got SIGINT from the terminal again; killing 2 workers");
  story.stops(0, SIGKILL);
  CHECK(live(story) == "(silent)");
  story.exits(0, SIGKILL).exits(1, SIGKILL);
  story.say(event::SignalReceived{SIGTERM, 0, 0, "outside the container", false, ""});
  CHECK(live(story) == "got SIGTERM from outside the container; no worker is running");
}

TEST_CASE("a restart names its attempt and its reason") {
  JobStory story;
  story.start(2, 2)
      .start_attempt(2)
      .say(story.failure(1))
      .say(event::RestartScheduled{1, 1, 2, true});
  CHECK(live(story) == "restarting (attempt 2 of 3) after rank 1: exited with code 3");
}

TEST_CASE("a restart that is put off says for how long, and by whom it is not") {
  JobStory story;
  story.start(2, 2).start_attempt(2).exits(0, 3 << 8).exits(1, SIGTERM).say(story.failure(0));
  story.say(event::RestartScheduled{1, 1, 2, true, 4'000});
  CHECK(live(story) == "restarting in 4.0 s (attempt 2 of 3) after rank 0: exited with code 3");
  story.say(event::RestartRequested{0, "HTTP from 127.0.0.1", ""});
  CHECK(live(story) == "restarting at once: asked for by HTTP from 127.0.0.1");
}

TEST_CASE("a restart that was asked for says by whom, and is charged to nobody") {
  JobStory story;
  story.start(2, 2).start_attempt(2);
  story.say(event::RestartRequested{0, "HTTP from 127.0.0.1", ""});
  CHECK(live(story) == "restarting: asked for by HTTP from 127.0.0.1; stopping 2 workers");
  CHECK(story.state.current()->restart_asked_by == "HTTP from 127.0.0.1");
  story.exits(0, SIGTERM).exits(1, SIGTERM).say(event::RestartScheduled{1, 0, 2, false});
  CHECK(live(story) == "starting again as asked (0 of 2 restarts used)");
}

TEST_CASE("text of others in a live line cannot drive the terminal") {
  JobStory story;
  story.start(1).say(event::Trouble{"store", "peer sent \x1b[2J\n" + std::string(1000, 'x')});
  CHECK(live(story).find('\x1b') == std::string::npos);
  CHECK(live(story).size() < 210);
}

TEST_CASE("stacks are named by their place, with who differs unless the stall says that next") {
  event::EvidenceSaved saved;
  saved.attempt = 0;
  saved.host = "node-a";
  saved.folder = "/runs/" + std::string(300, 'f') + "/stacks_0";
  saved.groups = {"ranks 0, 2: recv", "rank 1 differs: load (data.py:7)"};
  JobStory story;
  story.start(3).start_attempt(3).say(saved);
  const std::string place = "stacks of the workers: " + saved.folder;
  CHECK(live(story) == place + "; rank 1 differs: load (data.py:7)");
  event::StallFound stall;
  stall.attempt = 0;
  story.say(stall).say(saved);
  CHECK(live(story) == place);
  stall.suspects = "1";
  stall.text = "rank 1 differs: " + std::string(280, 'f');
  CHECK(live(story.say(stall)) == "stalled: " + stall.text);
  story.say(saved);
  CHECK(live(story) == place + "; rank 1 differs: load (data.py:7)");
  saved.host = "node-b";  // which says it itself
  CHECK(live(story.say(saved)) == "(silent)");
}

TEST_CASE("a job of which a part has finished is said, but not before some time") {
  JobStory story;
  story.start(4).start_attempt(4).after_ms(1000);
  CHECK_FALSE(uneven_end_line(story.state, story.now_us));
  story.exits(0, 0).exits(1, 0).exits(2, 0);
  CHECK_FALSE(uneven_end_line(story.state, story.now_us + kUnevenEndUs / 2));
  CHECK(uneven_end_line(story.state, story.now_us + kUnevenEndUs).value_or("") ==
        "ranks 0-2 finished, rank 3 still running after 5.0 s");
  story.exits(3, 0);
  CHECK_FALSE(uneven_end_line(story.state, story.now_us + kUnevenEndUs));
}

TEST_CASE("a part that names itself in its trouble is named once") {
  Recorder recorder;
  std::vector<std::string> lines;
  recorder.observe([&](const JobState& state, const Event& event) {
    lines.push_back(live_line(state, event).value_or("(silent)"));
  });
  recorder.trouble("store", "store: connection of 10.0.0.1:1 closed: a second VALIDATE");
  recorder.trouble("store", "accept on port 1: Too many open files");
  CHECK(lines == std::vector<std::string>{
                     "store: connection of 10.0.0.1:1 closed: a second VALIDATE",
                     "store: accept on port 1: Too many open files",
                 });
}

}  // namespace muster
