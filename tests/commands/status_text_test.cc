// SPDX-License-Identifier: Apache-2.0
#include "supervisor/commands/status_text.h"

#include <doctest/doctest.h>

#include "job/job_story.h"
#include "supervisor/commands/text_fields.h"
#include "supervisor/status/status_json.h"

namespace muster {

namespace {

// What the API itself writes of a job.
std::string status_of(const JobStory& story, bool live = true,
                      const std::vector<RankSample>& samples = {},
                      const std::vector<StoreWaiter>& waiters = {}) {
  StatusFacts facts{JobView{story.state}, samples, waiters, std::nullopt, Clock::now()};
  facts.view.live = live;
  facts.view.now_us = JobStory::kStartSeconds * 1'000'000 + story.now_us;
  if (!waiters.empty()) facts.store = StoreCounters{};
  std::string json;
  write_status(json, facts, std::nullopt);
  return json;
}

StatusText text_of(const std::string& json, StatusStyle style = {}) {
  Result<StatusText> text = status_text(json, style);
  REQUIRE(text);
  return *text;
}

std::string joined(const StatusText& text) {
  std::string out;
  for (const std::string& line : text.lines)
    out += line + "\n";
  return out;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

JobStory failed_job() {
  JobStory story;
  story.start(4, 1).after_ms(10).start_attempt(4).after_ms(12'000).exits(1, 3 << 8);
  story.stops(0, 15).stops(2, 15).stops(3, 15).after_ms(50).exits(0, 15).exits(2, 15).exits(3, 15);
  event::FailureFound found = story.failure(1);
  found.excerpt = {"line one", "\x1b[2J\x1b]0;evil\x07 last line"};
  found.excerpt_source = "stderr";
  found.stderr_log = "/runs/4f1c/attempt_0/1/stderr.log";
  story.say(found).ends(Outcome::kFailed, 1);
  return story;
}

}  // namespace

TEST_CASE("a job that runs is one line, and its ranks are folded") {
  JobStory story;
  story.start(8).start_attempt(8).after_ms(90'000);
  const StatusText text = text_of(status_of(story));
  CHECK(text.headline == "RUNNING for 00:01:30 · 8 ranks run");
  CHECK_FALSE(text.bad);
  CHECK_FALSE(text.over);
  CHECK(has(joined(text), "run 4f1c · train.py · 8 ranks · node-a\n"));
  CHECK(has(joined(text), "\n0-7    running  00:01:30\n"));
}

TEST_CASE("a failure comes before the ranks: what, who, why, what to do, evidence, victims") {
  const StatusText text = text_of(status_of(failed_job(), false));
  CHECK(text.bad);
  CHECK(text.over);
  CHECK(text.headline.starts_with("FAILED after 12.0 s · "));
  const std::string all = joined(text);
  size_t last = 0;
  for (const char* label :
       {"failure    exited with code 3", "who        rank 1 on node-a (pid 1001)", "reason     ",
        "hint       ", "stderr     line one", "log        /runs/4f1c/attempt_0/1/stderr.log",
        "victims    ranks 0,2-3: stopped by muster", "ranks  state"}) {
    CAPTURE(label);
    const size_t at = all.find(label);
    REQUIRE(at != std::string::npos);
    CHECK(at > last);
    last = at;
  }
}

TEST_CASE(
    "the line that shows a failure is told once, with what else was found and who is blamed") {
  JobStory story;
  story.start(2, 1).start_attempt(2).after_ms(1'000).exits(1, 256);
  event::FailureFound found = story.failure(1);
  found.excerpt = {"saving", "Killed"};
  found.excerpt_source = "stderr";
  found.line = "oom-kill: task=python,pid=1001";
  found.line_source = "kernel log";
  found.evidence = {"peak memory 15.9 GiB", "cgroup /job: killed 1 process"};
  found.victim = true;
  found.blames = "0,2-3";
  story.say(found);
  const std::string all = joined(text_of(status_of(story)));
  CHECK(has(all, "line       kernel log: oom-kill: task=python,pid=1001\n"));
  CHECK(has(all, "evidence   peak memory 15.9 GiB\n           cgroup /job: killed 1 process\n"));
  CHECK(has(all, "victim     of ranks 0,2-3, whom it names\n"));
  story.state.attempts[0].root_cause->line = "Killed";
  story.state.attempts[0].root_cause->blames = "";
  const std::string other = joined(text_of(status_of(story)));
  CHECK_FALSE(has(other, "line       "));
  CHECK(has(other, "stderr     saving\n           Killed\n"));
  CHECK(has(other, "victim     of another's failure; it does not tell whose\n"));
}

TEST_CASE("a stalled job is not well: since when, who differs, where the stacks lie") {
  JobStory story;
  story.start(3).start_attempt(3).after_ms(3'900'000);
  const int64_t now_us = JobStory::kStartSeconds * 1'000'000 + story.now_us;
  story.say(event::StallFound{0, "in_kernel", "1", "0,2", now_us - 300'000'000,
                              "rank 1 waits in the kernel (nfs_wait_bit)"});
  story.say(event::EvidenceSaved{0,
                                 "node-a",
                                 "stalled",
                                 "/runs/4f1c/attempt_0/stacks_0",
                                 {"ranks 0,2: epoll_wait", "rank 1: read"},
                                 "no py-spy here"});
  RankSample sample;
  sample.rank = 1;
  sample.state = 'D';
  sample.wait_channel = "nfs_wait_bit";
  sample.alive_us = now_us - 300'000'000;
  const std::string json = status_of(story, true, {sample});
  const StatusText text = text_of(json);
  CHECK(text.bad);
  CHECK_FALSE(text.over);
  CHECK(text.headline == "STALLED for 00:05:00 · rank 1 waits in the kernel (nfs_wait_bit)");
  CHECK(text.change == "stalled rank 1 waits in the kernel (nfs_wait_bit)");
  const std::string all = joined(text);
  CHECK(has(all, "runs for 01:05:00"));
  CHECK(has(all, "\nstalled    rank 1 waits in the kernel (nfs_wait_bit)\n"));
  CHECK(has(all, "\nlook at    rank 1\n"));
  CHECK(has(all, "\nhint       It waits in the kernel"));
  CHECK(has(all, "\nwaiting    ranks 0,2\n"));
  CHECK(has(all,
            "\nstacks     /runs/4f1c/attempt_0/stacks_0 on node-a · stalled · no py-spy here\n"));
  CHECK(has(all, "\n           ranks 0,2: epoll_wait\n           rank 1: read\n"));
  CHECK_FALSE(has(all, "attention"));
  CHECK(has(all, "1      running, suspect"));
  CHECK(has(all, "D in nfs_wait_bit"));
  const std::string rows = joined(text_of(json, {false, true}));
  CHECK(has(rows, "last sign  process"));
  CHECK(has(rows, "00:05:00  D in nfs_wait_bit"));
}

TEST_CASE("a stall that is over is told with how it ended, and the job is well again") {
  JobStory story;
  story.start(3).start_attempt(3).after_ms(500'000);
  story.say(event::StallFound{0, "all_idle", "", "0-2", 1, "all ranks are idle"});
  story.say(event::StallOver{0, 420'000'000, "rank 2 wrote again"});
  const StatusText text = text_of(status_of(story));
  CHECK_FALSE(text.bad);
  CHECK(text.headline.starts_with("RUNNING for "));
  CHECK(has(joined(text),
            "stalled    before, for 00:07:00 · all ranks are idle · rank 2 wrote again\n"));
}

TEST_CASE("what was saved of a hung attempt is told with its failure while the next one runs") {
  JobStory story;
  story.start(1, 1).start_attempt(1).after_ms(1'000);
  for (int i = 0; i < 6; ++i)
    story.say(event::EvidenceSaved{0, "node-a", "stalled", "/stacks_" + std::to_string(i), {}, ""});
  story.exits(0, 6).say(story.failure(0));
  CHECK(has(joined(text_of(status_of(story))), "stacks     /stacks_5 on node-a · stalled\n"));
  story.say(event::RestartScheduled{1, 1, 1, true}).start_attempt(1);
  const std::string all = joined(text_of(status_of(story)));
  const size_t at = all.find("stacks     /stacks_5 on node-a");
  REQUIRE(at != std::string::npos);
  CHECK(at > all.find("failure "));
  CHECK(all.find("stacks     /stacks_5", at + 1) == std::string::npos);
  CHECK(has(all, "           and in 2 more folders\n"));
}

TEST_CASE("nothing in a status drives the reader's terminal") {
  for (bool colour : {false, true}) {
    const std::string all = joined(text_of(status_of(failed_job(), false), {colour, true}));
    CHECK_FALSE(has(all, "\x1b[2J"));
    CHECK_FALSE(has(all, "\x1b]"));
    CHECK(has(all, "\x1b[") == colour);
  }
}

TEST_CASE("a killed run says so") {
  JobStory story;
  story.start(2).start_attempt(2).after_ms(5'000);
  story.say(event::Trouble{"muster", "was killed"});
  story.state.phase = Phase::kEnded;
  const StatusText text = text_of(status_of(story, false));
  CHECK(text.bad);
  CHECK(text.over);
  CHECK(text.headline.starts_with("KILLED after 5.0 s · muster was killed"));
  CHECK(has(joined(text), "0-1    lost"));
}

TEST_CASE("a job that waits says who is here and how many are missing") {
  JobStory story;
  story.start(2);
  story.say(event::NodesAwaited{1, 3, 4, {"node-a (2)"}, 30'000, "1 of 3 nodes: have node-a (2)"});
  const std::string all = joined(text_of(status_of(story)));
  CHECK(has(all, "WAITING for "));
  CHECK(has(all, "waiting    1 of 3 nodes: have node-a (2)"));
  CHECK(has(all, "here       node-a (2)"));
  CHECK(has(all, "missing    2 nodes"));
  CHECK(has(all, "time left  30.0 s"));
}

TEST_CASE("who waits in the store for what is shown") {
  JobStory story;
  story.start(2).start_attempt(2).after_ms(1'000);
  StoreWaiter waiter;
  waiter.pid = static_cast<uint32_t>(story.pid(1));
  waiter.since = Clock::now() - std::chrono::seconds(34);
  waiter.keys = {"/default_pg/0//cpu//0/0"};
  const std::string all = joined(text_of(status_of(story, true, {}, {waiter})));
  CHECK(has(all, "store      rank 1 waits 34"));
  CHECK(has(all, "/default_pg/0//cpu//0/0"));
}

TEST_CASE("progress and measures stand in a row for each rank when they are known") {
  JobStory story;
  story.start(2).start_attempt(2).after_ms(10'000);
  RankSample sample;
  sample.rank = 1;
  sample.cpu = 0.97;
  sample.rss_bytes = int64_t{3} << 30;
  sample.step = 812;
  sample.steps = 1000;
  sample.steps_per_s = 3.4;
  sample.loss = 0.93;
  sample.last_output_us = JobStory::kStartSeconds * 1'000'000 + story.now_us - 2'000'000;
  const std::string json = status_of(story, true, {sample});
  const std::string rows = joined(text_of(json, {false, true}));
  CHECK(has(rows, "progress   step 812 of 1000 · 3.40 steps/s · loss 0.93 · "));
  CHECK(has(rows, "3.0 GB"));
  CHECK(has(rows, "812/1000"));
  CHECK(has(rows, "0.97"));
  CHECK(has(joined(text_of(json)), "2.0 s (1)"));
}

TEST_CASE("a job of many ranks is shown by its groups and notable ranks") {
  JobStory story;
  story.start(200).start_attempt(200).after_ms(1'000).exits(150, 9);
  const std::string all = joined(text_of(status_of(story)));
  CHECK(has(all, "0-149,151-199"));
  CHECK(has(all, "150"));
  CHECK(has(all, "failed by SIGKILL"));
}

TEST_CASE(
    "another one's answer is refused, and one of another version is shown as far as it goes") {
  for (const char* text : {"", "[]", "{}", "null", "<html>"})
    CHECK_FALSE(status_text(text, {}));
  CHECK(status_text(R"({"phase":"running"})", {}));
  CHECK(status_text(R"({"phase":3,"failure":{"rank":"x","excerpt":[1]},"ranks":[7,{"rank":[]}],)"
                    R"("groups":{"a":1},"store":{"waits":[1]},"waiting":{"hosts":4},"progress":{},)"
                    R"("stall":{"text":1},"past_stalls":[1,{}],"saved":[3,{"groups":[1]}]})",
                    {}));
}

TEST_CASE("sizes are short") {
  CHECK(size_text(0) == "0 B");
  CHECK(size_text(1023) == "1023 B");
  CHECK(size_text(1024) == "1.0 KB");
  CHECK(size_text(int64_t{150} << 20) == "150 MB");
  CHECK(size_text(int64_t{3} << 30) == "3.0 GB");
}

TEST_CASE("columns are as wide as what is in them, and empty ones are left out") {
  TextFields out(false);
  TextTable table({"name", ">count", "empty", "text"});
  table.row({"\xC3\xA4", "1", "", "x"});
  table.row({"long name", "100", "", "y"});
  table.write(out, " ");
  CHECK(out.take() == std::vector<std::string>{" name       count  text",
                                               " \xC3\xA4              1  x",
                                               " long name    100  y"});
}

}  // namespace muster
