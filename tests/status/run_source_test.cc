// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/run_source.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include "loop/loop_test.h"
#include "status/run_on_disk.h"
#include "supervisor/job/report.h"
#include "supervisor/status/address_file.h"

namespace muster {

namespace {

struct SourceTest : LoopTest {
  RunOnDisk run;
  JobStory story;

  SourceTest() { run.made_at(JobStory::kStartSeconds); }

  std::unique_ptr<RunSource> open() {
    auto source = RunSource::open(loop, run.dir);
    REQUIRE(source);
    return std::move(*source);
  }

  std::string open_error(const std::string& dir) {
    auto source = RunSource::open(loop, dir);
    REQUIRE_FALSE(source);
    return source.error().message;
  }
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE_FIXTURE(SourceTest, "a finished run is the state that its events make") {
  story = eventful_story();
  run.append(story);
  auto source = open();
  CHECK(summary_json(source->state()) == summary_json(story.state));
  CHECK(source->next_seq() == static_cast<int64_t>(story.events.size()));
  CHECK(source->recent_events().size() == story.events.size());
  CHECK_FALSE(source->live());
  CHECK_FALSE(source->killed());
  CHECK(source->run_dir() == run.dir);
  CHECK(source->host() == "node-a");
  CHECK(source->stop("me", false) == "the run is over");
  CHECK(source->restart("me") == "the run is over");
}

TEST_CASE_FIXTURE(SourceTest, "a folder is named with or without a slash at its end") {
  run.append(story.start(1).start_attempt(1).ends(Outcome::kSucceeded, 0));
  auto source = RunSource::open(loop, run.dir + "/");
  REQUIRE(source);
  CHECK((*source)->run_dir() == run.dir);
}

TEST_CASE_FIXTURE(SourceTest, "a killed run is over, and says when it was last seen") {
  story.start(2).after_ms(1'000).start_attempt(2);
  run.append(story);
  run.append("{\"seq\":5,\"time\":\"2026-11-2");  // the write that the kill cut off
  RunOnDisk::set_time(run.events, JobStory::kStartSeconds + 1);
  run.folder.write("4f1c_abcdefgh/attempt_0/1/stdout.log", "step 1\n");
  RunOnDisk::set_time(run.dir + "/attempt_0/1/stdout.log", JobStory::kStartSeconds + 75);
  auto source = open();
  CHECK_FALSE(source->live());
  CHECK(source->killed());
  CHECK_FALSE(source->state().end);
  CHECK(source->state().phase == Phase::kEnded);
  CHECK(source->state().last_us == 75'000'000);
  REQUIRE(source->state().troubles.size() == 1);
  const event::Trouble& trouble = source->state().troubles.back();
  CHECK(trouble.subject == "muster");
  CHECK(has(trouble.message, "was killed"));
  CHECK(has(trouble.message, "2026-11-29T12:01:15.000Z, 00:01:15 after the start"));
  CHECK(source->next_seq() == static_cast<int64_t>(story.events.size()) + 1);
}

TEST_CASE_FIXTURE(SourceTest, "a copy of a killed run was last seen when its last event was") {
  story.start(1).after_ms(3'000).start_attempt(1);
  run.append(story);
  run.made_at(JobStory::kStartSeconds + 86'400);  // when it was copied
  CHECK(open()->state().last_us == 3'000'000);
  std::filesystem::remove(run.dir + "/" + kRunLockFile);
  CHECK(open()->killed());
}

TEST_CASE_FIXTURE(SourceTest, "a live run is followed to its end") {
  run.live();
  run.append(story.start(2).start_attempt(2));
  auto source = open();
  CHECK(source->live());
  CHECK(source->state().phase == Phase::kRunning);
  std::vector<int64_t> seen;
  bool over = false;
  source->set_observer([&](const Event& event) {
    CHECK(event.seq + 1 == source->next_seq());
    seen.push_back(event.seq);
  });
  source->set_on_over([&] { over = true; });

  const size_t first = story.events.size();
  story.after_ms(500).exits(0, 0).exits(1, 0).ends(Outcome::kSucceeded, 0);
  run.append(story, first);
  REQUIRE(run_until([&] { return seen.size() == story.events.size() - first; }));
  CHECK(seen.front() == static_cast<int64_t>(first));
  CHECK(source->live());  // its muster is still there
  CHECK_FALSE(over);
  run.die();
  REQUIRE(run_until([&] { return over; }));
  CHECK_FALSE(source->live());
  CHECK_FALSE(source->killed());
  CHECK(summary_json(source->state()) == summary_json(story.state));
}

TEST_CASE_FIXTURE(SourceTest, "a run that is killed while it is followed is over") {
  run.live();
  run.append(story.start(2).start_attempt(2));
  auto source = open();
  bool over = false;
  source->set_on_over([&] { over = true; });
  run.die();
  REQUIRE(run_until([&] { return over; }));
  CHECK(source->killed());
  CHECK(source->state().phase == Phase::kEnded);
}

TEST_CASE_FIXTURE(SourceTest, "whoever is told that the run is over may drop the source") {
  run.live();
  run.append(story.start(1).start_attempt(1));
  auto source = open();
  source->set_on_over([&] { source.reset(); });
  run.die();
  REQUIRE(run_until([&] { return !source; }));
}

TEST_CASE_FIXTURE(SourceTest, "a source may go while it looks at its file") {
  run.live();
  run.append(story.start(1).start_attempt(1));
  auto source = open();
  // Of two timers for the same moment the later one comes second: the look is then in the pool.
  auto timer = Timer::start(loop, RunSource::kLookEvery, [&] { source.reset(); });
  REQUIRE(run_until([&] { return !source && !loop.has_requests(); }));
}

TEST_CASE_FIXTURE(SourceTest, "a line that is written in two parts is one event") {
  run.live();
  run.append(story.start(1).start_attempt(1));
  story.say(event::Trouble{"store", "x"});
  const std::string line = event_to_json(story.last()) + "\n";
  run.append(line.substr(0, 20));
  auto source = open();
  CHECK(source->state().troubles.empty());
  run.append(line.substr(20));
  REQUIRE(run_until([&] { return source->state().troubles.size() == 1; }));
}

TEST_CASE_FIXTURE(SourceTest, "damaged lines are counted and shown, the rest stays") {
  story.start(1).start_attempt(1);
  run.append(story);
  run.append("\x01\x02 nonsense\n{\"seq\": 7}\n");
  const size_t first = story.events.size();
  run.append(story.exits(0, 0).ends(Outcome::kSucceeded, 0), first);
  auto source = open();
  CHECK(source->state().end->outcome == Outcome::kSucceeded);
  REQUIRE(source->state().troubles.size() == 1);
  CHECK(source->state().troubles[0].message == "events.jsonl: 2 lines are damaged and left out");
}

TEST_CASE_FIXTURE(SourceTest, "events of a newer version are counted and shown") {
  story.start(1).start_attempt(1).ends(Outcome::kSucceeded, 0);
  run.append(story);
  run.append("{\"seq\":9,\"event\":\"moon_rose\"}\n");
  auto source = open();
  REQUIRE(source->state().troubles.size() == 1);
  CHECK(has(source->state().troubles[0].message, "1 event is of a newer muster"));
}

TEST_CASE_FIXTURE(SourceTest, "numbers only grow, whatever the file says") {
  run.append(story.start(1).start_attempt(1));
  Event again = story.events[1];
  run.append(again);
  Event later = story.events[1];
  later.seq = 100;
  later.body = event::Trouble{"store", "x"};
  run.append(later);
  auto source = open();
  int64_t last = -1;
  for (const Event& event : source->recent_events()) {
    CHECK(event.seq > last);
    last = event.seq;
  }
  CHECK(last >= 100);
  CHECK(source->next_seq() == last + 1);
}

TEST_CASE_FIXTURE(SourceTest, "of a long run the last events are kept") {
  story.start(1);
  for (size_t i = 0; i < RunSource::kRecentEvents + 10; ++i)
    story.say(event::Trouble{"store", std::to_string(i)});
  run.append(story);
  auto source = open();
  std::vector<Event> recent = source->recent_events();
  REQUIRE(recent.size() == RunSource::kRecentEvents);
  CHECK(recent.back().seq + 1 == source->next_seq());
}

TEST_CASE_FIXTURE(SourceTest, "what is measured of a live run is read as it comes") {
  run.live();
  run.append(story.start(2).start_attempt(2));
  auto source = open();
  CHECK(source->samples().empty());
  RankSample sample;
  sample.rank = 1;
  sample.time_us = 77;
  sample.step = 5;
  auto append = [this](const std::string& line) {
    std::ofstream(run.dir + "/samples.jsonl", std::ios::app) << line;
  };
  append(history_line(0, 77, {sample}));
  REQUIRE(run_until([&] { return source->samples().size() == 1; }));
  CHECK(source->samples()[0].step == 5);
  sample.step = 6;
  append(history_line(0, 78, {sample}));
  REQUIRE(run_until([&] { return source->samples()[0].step == 6; }));
  // Those of another attempt are not this one's.
  append(history_line(1, 79, {sample}));
  REQUIRE(run_until([&] { return source->samples().empty(); }));
}

TEST_CASE_FIXTURE(SourceTest, "a live run without an event is one that starts") {
  run.live();
  auto source = open();
  CHECK(source->live());
  CHECK(source->state().phase == Phase::kStarting);
  run.append(story.start(1));
  REQUIRE(run_until([&] { return source->state().job.run_id == "4f1c"; }));
}

TEST_CASE_FIXTURE(SourceTest, "what is no run's folder is told apart, with what to do") {
  CHECK(has(open_error(run.dir), "events.jsonl is empty: its muster ended before the job"));
  run.append("garbage\n");
  CHECK(has(open_error(run.dir), "no line is an event"));
  run.append("{\"event\":\"moon_rose\"}\n");
  CHECK(has(open_error(run.dir), "written by a newer muster"));
  CHECK(has(open_error(run.folder.file("gone")), "gone: No such file"));
  CHECK(has(open_error(run.events), "is a file: name the run's folder"));
  CHECK(has(open_error(run.folder.path()), "is not a run's folder: it has no events.jsonl"));
  std::filesystem::remove(run.events);
  CHECK(has(open_error(run.dir), "ended before the job began"));
}

TEST_CASE_FIXTURE(SourceTest, "a live run is not changed through its files") {
  run.live();
  run.append(story.start(1).start_attempt(1));
  auto source = open();
  CHECK(has(source->stop("me", false), "stop the job by a signal to pid 99 on node-a"));
  REQUIRE(write_address_file(run.dir, "http://127.0.0.1:7/?token=secret"));
  const std::string why = source->restart("me");
  CHECK(has(why, "restart the job from its own page, http://127.0.0.1:7/"));
  CHECK_FALSE(has(why, "secret"));
}

}  // namespace muster
