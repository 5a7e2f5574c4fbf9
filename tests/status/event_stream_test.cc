// SPDX-License-Identifier: Apache-2.0
#include <sys/socket.h>

#include "loop/timer.h"
#include "status/server_fixture.h"
#include "supervisor/job/event_json.h"
#include "supervisor/status/event_hub.h"

namespace muster {

namespace {

using Json = nlohmann::json;

const HttpHeaders kStream{{"Accept", "text/event-stream"}};

// What a page would know: rows by their keys, replaced as the messages say.
struct Known {
  Json job;
  std::map<std::string, Json> rows;
  std::vector<int64_t> events;
  std::string id;

  void take(const Told& told) {
    if (told.event == "samples") return;
    if (told.event == "state") *this = Known{};
    id = told.id;
    if (told.data.contains("job")) job = told.data["job"];
    for (const Json& row : told.data["nodes"])
      rows["node " + row["id"].get<std::string>()] = row;
    for (const Json& row : told.data["attempts"])
      rows["attempt " + row["attempt"].dump()] = row;
    for (const Json& row : told.data["ranks"])
      rows["rank " + row["attempt"].dump() + " " + row["rank"].dump()] = row;
    for (const Json& event : told.data["events"])
      events.push_back(event["seq"]);
  }
  void take(const Streamed& stream) {
    for (const Told& told : stream.messages)
      take(told);
  }
};

struct StreamTest : ServerTest {
  // What the whole state would say now.
  Known truth() {
    Streamed& fresh = stream("/api/v1/events", kStream);
    REQUIRE(run_until([&] { return !fresh.messages.empty(); }));
    Known known;
    known.take(fresh);
    fresh.call.reset();
    return known;
  }

  void check_same(Known known, Known now) {
    for (Known* one : {&known, &now})
      one->job.erase("now_us");
    CHECK(known.job == now.job);
    for (const auto& entry : now.rows) {
      CAPTURE(entry.first);
      CHECK(known.rows[entry.first] == entry.second);
    }
  }

  bool has_seq(const Streamed& stream, int64_t seq) {
    return !stream.messages.empty() &&
           std::any_of(stream.messages.begin(), stream.messages.end(),
                       [&](const Told& m) { return m.data.value("seq", -1) == seq; });
  }
};

}  // namespace

TEST_CASE_FIXTURE(StreamTest, "first comes the whole state, then what changes") {
  job.story.start(3, 1).start_attempt(3);
  start();
  Streamed& stream = this->stream("/api/v1/events", kStream);
  REQUIRE(run_until([&] { return stream.count("state") == 1; }));
  CHECK(stream.status == 200);
  const Told& state = stream.messages[0];
  CHECK(state.data["seq"] == job.next_seq());
  CHECK(state.data["job"]["phase"] == "running");
  CHECK(state.data["ranks"].size() == 3);
  CHECK(state.data["attempts"].size() == 1);
  CHECK(state.data["events"].size() == 5);

  job.story.exits(1, 3 << 8);
  job.tell();
  REQUIRE(run_until([&] { return stream.count("change") == 1; }));
  const Told& change = *stream.last("change");
  CHECK(change.data["seq"] == job.next_seq());
  REQUIRE(change.data["ranks"].size() == 1);
  CHECK(change.data["ranks"][0]["rank"] == 1);
  CHECK(change.data["ranks"][0]["state"] == "failed");
  CHECK(change.data["nodes"].empty());
  REQUIRE(change.data["events"].size() == 1);
  CHECK(change.data["events"][0]["event"] == "worker_exited");
}

TEST_CASE_FIXTURE(StreamTest, "whoever follows from the start knows what a newcomer is told") {
  const JobStory all = eventful_story();
  start();
  Streamed& stream = this->stream("/api/v1/events?stream=1");
  REQUIRE(run_until([&] { return stream.count("state") == 1; }));
  size_t told = 0;
  for (const Event& event : all.events) {
    job.story.now_us = event.mono_us;
    job.say(event.body);
    // Some alone, some together.
    if (++told % 3 != 0) continue;
    REQUIRE(run_until([&] { return has_seq(stream, job.next_seq()); }));
  }
  REQUIRE(run_until([&] { return has_seq(stream, job.next_seq()); }));
  Known known;
  known.take(stream);
  check_same(known, truth());
  std::vector<int64_t> every;
  for (int64_t seq = 0; seq < job.next_seq(); ++seq)
    every.push_back(seq);
  CHECK(known.events == every);
}

TEST_CASE_FIXTURE(StreamTest, "a client that was cut off goes on where it was") {
  job.story.start(3, 1).start_attempt(3);
  start();
  Streamed& before = stream("/api/v1/events", kStream);
  REQUIRE(run_until([&] { return before.count("state") == 1; }));
  Known known;
  known.take(before);
  before.call.reset();
  job.story.exits(0, 0).exits(2, 9);
  job.tell();
  // While nobody listens another attempt begins.
  job.story.say(event::RestartScheduled{1, 1, 1, true}).start_attempt(3);
  job.tell();

  for (bool by_header : {true, false}) {
    Streamed& after = by_header ? stream("/api/v1/events", {{"Accept", "text/event-stream"},
                                                            {"Last-Event-ID", known.id}})
                                : stream("/api/v1/events?stream=1&last_event_id=" + known.id);
    REQUIRE(run_until([&] { return !after.messages.empty(); }));
    CHECK(after.messages[0].event == "change");
    CHECK(after.messages[0].data["events"].size() == 7);
    Known resumed = known;
    resumed.take(after);
    check_same(resumed, truth());
    // The last states of the attempt that is over are among it.
    CHECK(resumed.rows["rank 0 2"]["state"] == "failed");
    after.call.reset();
  }
}

TEST_CASE_FIXTURE(StreamTest, "the id of another server means nothing here") {
  job.story.start(1).start_attempt(1);
  start();
  Streamed& mine = stream("/api/v1/events", kStream);
  REQUIRE(run_until([&] { return mine.count("state") == 1; }));
  const std::string id = mine.messages[0].id;
  const std::string epoch = id.substr(0, id.find('-'));
  for (const std::string& wrong : std::vector<std::string>{"0123456789ab-2", "x", "-", id + "0",
                                                           epoch + "-99", epoch + "--1", epoch}) {
    CAPTURE(wrong);
    Streamed& stream =
        this->stream("/api/v1/events", {{"Accept", "text/event-stream"}, {"Last-Event-ID", wrong}});
    REQUIRE(run_until([&] { return !stream.messages.empty(); }));
    CHECK(stream.messages[0].event == "state");
    stream.call.reset();
  }
}

TEST_CASE_FIXTURE(StreamTest, "samples come when they are new") {
  job.story.start(2).start_attempt(2);
  RankSample sample;
  sample.rank = 0;
  sample.time_us = 1;
  job.rank_samples.push_back(sample);
  sample.rank = 1;
  job.rank_samples.push_back(sample);
  start();
  Streamed& stream = this->stream("/api/v1/events", kStream);
  REQUIRE(run_until([&] { return stream.count("samples") == 1; }));
  CHECK(stream.last("samples")->data["samples"].size() == 2);
  CHECK(stream.last("samples")->id == "");
  job.rank_samples[1].time_us = 2;
  job.rank_samples[1].step = 7;
  REQUIRE(run_until([&] { return stream.count("samples") == 2; }));
  const Json& samples = stream.last("samples")->data["samples"];
  REQUIRE(samples.size() == 1);
  CHECK(samples[0]["rank"] == 1);
  CHECK(samples[0]["step"] == 7);
}

TEST_CASE_FIXTURE(StreamTest, "a run whose muster is killed is told anew") {
  job.story.start(1).start_attempt(1);
  start();
  Streamed& stream = this->stream("/api/v1/events", kStream);
  REQUIRE(run_until([&] { return stream.count("state") == 1; }));
  job.is_live = false;
  REQUIRE(run_until([&] { return stream.count("state") == 2; }));
  CHECK(stream.last("state")->data["job"]["live"] == false);
  CHECK(stream.last("state")->data["ranks"][0]["state"] == "lost");
}

TEST_CASE_FIXTURE(StreamTest,
                  "a client that does not read costs no memory and gets all in the end") {
  job.story.start(500).start_attempt(500);
  start();
  // One that reads nothing until it is told to.
  UniqueFd stalled(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  int small = 4096;
  ::setsockopt(stalled.get(), SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
  auto address = SocketAddress::parse("127.0.0.1", port());
  REQUIRE(::connect(stalled.get(), address->raw(), address->size()) == 0);
  const std::string request = "GET /api/v1/events?stream=1 HTTP/1.1\r\nHost: localhost\r\n\r\n";
  REQUIRE(::send(stalled.get(), request.data(), request.size(), 0) ==
          static_cast<ssize_t>(request.size()));
  Streamed& reading = stream("/api/v1/events", kStream);
  for (int i = 0; i < 80; ++i) {
    for (int rank = 0; rank < 500; ++rank)
      job.story.stops(rank, i % 2 == 0 ? 15 : 9);
    job.tell();
    REQUIRE(run_until([&] { return has_seq(reading, job.next_seq()); }));
  }
  const size_t everything = reading.bytes.size();
  job.say(event::Trouble{"test", "the last of all"});

  std::string got;
  const int fd = stalled.get();
  REQUIRE(run_until([&] {
    char buffer[65536];
    ssize_t size = 0;
    while ((size = ::recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT)) > 0)
      got.append(buffer, static_cast<size_t>(size));
    return got.find("the last of all") != std::string::npos;
  }));
  // Far less than what the one that kept up got: no queue was kept for it.
  CHECK(got.size() < everything / 2);
}

TEST_CASE_FIXTURE(StreamTest, "a client that is gone is let go") {
  job.story.start(1).start_attempt(1);
  start();
  EventHub::Limits limits;
  limits.max_streams = 128;
  for (size_t i = 0; i < limits.max_streams; ++i) {
    Streamed& one = stream("/api/v1/events", kStream);
    REQUIRE(run_until([&] { return !one.messages.empty(); }));
  }
  Streamed& more = stream("/api/v1/events", kStream);
  REQUIRE(run_until([&] { return more.ended || more.status != 0; }));
  CHECK(more.status == 503);
  for (Streamed& one : streams)
    one.call.reset();
  bool open = false;
  for (int i = 0; i < 100 && !open; ++i) {
    Streamed& again = stream("/api/v1/events", kStream);
    REQUIRE(run_until([&] { return again.status != 0; }));
    open = again.status == 200;
  }
  CHECK(open);
}

TEST_CASE_FIXTURE(StreamTest, "events are also had as lines") {
  job.story = eventful_story();
  start();
  const HttpResponse all = get("/api/v1/events");
  CHECK(all.header("content-type") == "application/x-ndjson");
  std::string expected;
  for (const Event& event : job.story.events)
    expected += event_to_json(event) + "\n";
  CHECK(all.body == expected);
  const HttpResponse last = get("/api/v1/events?since=" + std::to_string(job.next_seq() - 1));
  CHECK(last.body == event_to_json(job.story.events.back()) + "\n");
  CHECK(get("/api/v1/events?since=99999").body == "");
  CHECK(get("/api/v1/events?since=x").status == 400);
}

TEST_CASE_FIXTURE(StreamTest, "events that memory has not kept come from the file") {
  job.story.start(1).start_attempt(1);
  for (int i = 0; i < 5'000; ++i)
    job.story.say(event::Trouble{"test", "number " + std::to_string(i) + std::string(200, 'x')});
  std::string expected;
  std::string written;
  for (const Event& event : job.story.events) {
    expected += event_to_json(event) + "\n";
    // The last ones are not in the file yet, the very last one is cut.
    if (event.seq < 4'900) written = expected;
  }
  job.dir = folder.path();
  job.keep_recent = 1'000;
  folder.write("events.jsonl", written + "{\"seq\":4900,\"ti");
  start();
  CHECK(get("/api/v1/events").body == expected);
  const std::string line = "{\"seq\":2000,";
  CHECK(get("/api/v1/events?since=2000").body == expected.substr(expected.find(line)));
}

}  // namespace muster
