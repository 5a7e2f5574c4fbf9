// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/remote_link.h"

#include <doctest/doctest.h>
#include <signal.h>

#include <optional>
#include <string>
#include <vector>

#include "loop/loop_test.h"
#include "rendezvous/relay.h"
#include "rendezvous/scripted_peer.h"

namespace muster {

namespace {

constexpr int kAttempt = 4;
const event::SignalReceived kSigterm = [] {
  event::SignalReceived signal;
  signal.signal = SIGTERM;
  return signal;
}();

// A link to a coordinator whose every word the test decides, through a network that it can break.
struct RemoteLinkTest : LoopTest {
  ScriptedPeer peer{loop};
  Relay relay{loop, peer.port()};
  std::unique_ptr<Approach> approach;
  std::unique_ptr<RemoteLink> link;
  std::vector<std::string> calls;
  std::string lost_why;
  std::vector<EventBody> own_events;

  RemoteLinkTest() { peer.be_a_coordinator(welcome()); }

  // Quick, so that silence is noticed after 150 ms.
  static message::Welcome welcome(bool resumed = true) { return {false, resumed, 50, 3}; }

  void join() { join_at(relay.port()); }
  void join_at(int port) {
    const Approach::Introduction me = introduction_of("node-b");
    approach = std::make_unique<Approach>(
        loop, Approach::Target{{"127.0.0.1"}, port}, me, Milliseconds(10'000),
        Approach::Callbacks{[this, me](Approach::Joined joined) {
                              link = std::make_unique<RemoteLink>(
                                  loop, RemoteLink::Settings{"node-a:1", Milliseconds(1'000)}, me,
                                  std::move(joined), callbacks());
                            },
                            [](const Approach::Failure& f) { FAIL_CHECK(f.why); }});
    REQUIRE(run_until([this] { return link != nullptr; }));
    approach.reset();
  }

  CoordinatorLine::Callbacks callbacks() {
    CoordinatorLine::Callbacks c;
    c.on_assignment = [this](const Assignment& a) { call("assignment", a.attempt); };
    c.on_stop = [this](const StopOrder& o) { call("stop", o.attempt); };
    c.on_verdict = [this](const AttemptVerdict& v) { call("verdict", v.attempt); };
    c.on_end = [this](const JobEnd& e) { call("end", e.exit_code); };
    c.on_evidence = [this](const std::string& why) { calls.push_back("evidence " + why); };
    c.on_awaited = [this](const event::NodesAwaited& n) { call("awaited", n.have); };
    c.on_welcome = [this](bool, bool resumed) {
      calls.push_back(resumed ? "resumed" : "given up");
    };
    c.on_cut_off = [this](const std::string&) { calls.push_back("cut off"); };
    c.on_lost = [this](const std::string& why) {
      calls.push_back("lost");
      lost_why = why;
    };
    c.on_say = [](const std::string&) {};
    c.on_event = [this](EventBody e) { own_events.push_back(std::move(e)); };
    return c;
  }

  void call(const std::string& what, int number) {
    calls.push_back(what + " " + std::to_string(number));
  }
  bool called(const std::string& what) const {
    return std::find(calls.begin(), calls.end(), what) != calls.end();
  }
  void wait_for(const std::string& what) {
    INFO(what);
    REQUIRE(run_until([&] { return called(what); }));
  }

  void join_attempt() {
    join();
    Assignment assignment;
    assignment.attempt = kAttempt;
    assignment.world_size = assignment.role_world_size = 1;
    assignment.master_addr = "node-a";
    assignment.master_port = 1;
    peer.send(assignment);
    wait_for("assignment 4");
  }

  void add_events(int from, int to) {
    for (int i = from; i < to; ++i) {
      Event event;
      event.body = event::WorkerExited{kAttempt, i, i, 1, 0, 0};
      link->report(event);
    }
  }
};

}  // namespace

TEST_CASE_FIXTURE(RemoteLinkTest, "orders come in their order, news goes out as it is told") {
  join_attempt();
  StopOrder stop;
  stop.attempt = kAttempt;
  AttemptVerdict verdict;
  verdict.attempt = kAttempt;
  event::NodesAwaited awaited;
  awaited.have = 7;
  peer.send(stop);
  peer.send(verdict);
  peer.send(awaited);
  peer.send(JobEnd{Outcome::kFailed, 3, ""});
  wait_for("end 3");
  CHECK(calls ==
        std::vector<std::string>{"assignment 4", "stop 4", "verdict 4", "awaited 7", "end 3"});

  FailureNotice notice;
  notice.attempt = kAttempt;
  NodeOutcome outcome;
  outcome.attempt = kAttempt;
  link->failed(notice);
  link->settled(outcome);
  CHECK(link->request_stop(kSigterm, true));
  REQUIRE(run_until([&] { return peer.last<message::StopRequest>() != nullptr; }));
  CHECK(peer.last<message::StopRequest>()->kill);
  CHECK(peer.count<FailureNotice>() == 1);
  CHECK(peer.count<NodeOutcome>() == 1);
}

TEST_CASE_FIXTURE(RemoteLinkTest, "the events of one turn travel together, before the outcome") {
  join_attempt();
  add_events(0, 10);
  NodeOutcome outcome;
  outcome.attempt = kAttempt;
  SUBCASE("at the end of the turn") {
    REQUIRE(run_until([&] { return peer.count<message::Events>() == 1; }));
    CHECK(peer.last<message::Events>()->events.size() == 10);
  }
  SUBCASE("at once before an outcome") {
    link->settled(outcome);
    REQUIRE(run_until([&] { return peer.count<NodeOutcome>() == 1; }));
    CHECK(peer.count<message::Events>() == 1);
    CHECK(std::holds_alternative<NodeOutcome>(peer.messages().back()));
  }
}

TEST_CASE_FIXTURE(RemoteLinkTest, "a coordinator that does not read costs old events, not memory") {
  message::Welcome patient = welcome();
  patient.heartbeat_misses = 1000;
  peer.set_welcome(patient);
  join_at(peer.port());
  REQUIRE(run_until([&] { return peer.count<message::Heartbeat>() == 1; }));
  peer.set_reading(false);
  // More than both sockets and the queue hold.
  constexpr int kEvents = 20'000;
  for (int told = 0; told < kEvents; ++told) {
    Event event;
    event.body = event::Trouble{"test", std::string(1'000, 'x')};
    link->report(event);
    if (told % 100 == 0) loop.run_until([] { return true; }, Milliseconds(0));
  }
  peer.set_reading(true);
  int arrived = 0;
  int dropped = 0;
  size_t seen = 0;
  REQUIRE(run_until([&] {
    for (; seen < peer.messages().size(); ++seen) {
      auto* batch = std::get_if<message::Events>(&peer.messages()[seen]);
      if (batch == nullptr) continue;
      for (const EventBody& body : batch->events) {
        const auto& trouble = std::get<event::Trouble>(body);
        trouble.subject == "test" ? ++arrived : dropped += std::stoi(trouble.message);
      }
    }
    return arrived + dropped == kEvents;
  }));
  CHECK(dropped > 0);
  CHECK(arrived >= static_cast<int>(kMaxQueuedEvents));
  NodeOutcome outcome;
  outcome.attempt = kAttempt;
  link->settled(outcome);
  CHECK(run_until([&] { return peer.count<NodeOutcome>() == 1; }));
}

TEST_CASE_FIXTURE(RemoteLinkTest, "after a broken connection it comes back and repeats its news") {
  join_attempt();
  FailureNotice notice;
  notice.attempt = kAttempt;
  NodeOutcome outcome;
  outcome.attempt = kAttempt;
  link->failed(notice);
  link->settled(outcome);
  REQUIRE(run_until([&] { return peer.count<NodeOutcome>() == 1; }));
  relay.cut();
  wait_for("resumed");
  CHECK(peer.last<message::Join>()->facts.attempt == kAttempt);
  REQUIRE(run_until([&] { return peer.count<NodeOutcome>() == 2; }));
  CHECK(peer.count<FailureNotice>() == 2);
  CHECK(!called("cut off"));

  // Nothing is repeated once the coordinator has judged it.
  AttemptVerdict verdict;
  verdict.attempt = kAttempt;
  peer.send(verdict);
  wait_for("verdict 4");
  const int connections = peer.connections();
  relay.cut();
  REQUIRE(run_until(
      [&] { return peer.connections() == connections + 1 && peer.count<message::Join>() == 3; }));
  CHECK(peer.last<message::Join>()->facts.attempt == -1);
  const int beats = peer.count<message::Heartbeat>();
  REQUIRE(run_until([&] { return peer.count<message::Heartbeat>() > beats + 1; }));
  CHECK(peer.count<NodeOutcome>() == 2);
}

TEST_CASE_FIXTURE(RemoteLinkTest, "a stop that was asked for is asked for again after a break") {
  join_attempt();
  CHECK(link->request_stop(kSigterm, false));
  REQUIRE(run_until([&] { return peer.count<message::StopRequest>() == 1; }));
  relay.cut();
  CHECK(run_until([&] { return peer.count<message::StopRequest>() == 2; }));
}

TEST_CASE_FIXTURE(RemoteLinkTest, "a given-up node is told so and still reports its part's end") {
  join_attempt();
  peer.set_welcome(welcome(false));
  relay.cut();
  wait_for("given up");
  NodeOutcome outcome;
  outcome.attempt = kAttempt;
  link->settled(outcome);
  REQUIRE(run_until([&] { return peer.count<NodeOutcome>() == 1; }));
  relay.cut();
  REQUIRE(run_until([&] { return peer.count<message::Join>() == 3; }));
  CHECK(peer.last<message::Join>()->facts.attempt == -1);
}

TEST_CASE_FIXTURE(RemoteLinkTest, "where nobody listens any more the coordinator is gone at once") {
  message::Welcome patient = welcome();
  patient.heartbeat_misses = 1000;
  peer.set_welcome(patient);
  join_attempt();
  relay.refuse();
  wait_for("lost");
  CHECK(lost_why == "connection refused");
  CHECK(!called("cut off"));
}

TEST_CASE_FIXTURE(RemoteLinkTest, "a stranger at the coordinator's port means it is gone") {
  join_attempt();
  peer.greet_with("HTTP/1.1 400 Bad Request\r\n\r\n");
  relay.cut();
  wait_for("lost");
  CHECK(lost_why.starts_with("wrong protocol"));
}

TEST_CASE_FIXTURE(RemoteLinkTest, "silence cuts the node off, and then it is lost") {
  join_attempt();
  auto start = Clock::now();
  relay.freeze();
  wait_for("cut off");
  CHECK(Clock::now() - start >= Milliseconds(50));
  CHECK(!called("lost"));
  CHECK(!link->request_stop(kSigterm, false));
  wait_for("lost");
  CHECK(Clock::now() - start >= Milliseconds(200));
  CHECK(lost_why.starts_with("no "));
}

TEST_CASE_FIXTURE(RemoteLinkTest, "who was cut off and comes back in time goes on") {
  message::Welcome slow = welcome();
  slow.heartbeat_ms = 200;
  peer.set_welcome(slow);
  join_attempt();
  relay.freeze();
  wait_for("cut off");
  relay.thaw();
  relay.cut();
  wait_for("resumed");
  CHECK(!called("lost"));
}

TEST_CASE_FIXTURE(RemoteLinkTest, "a closed connection after the end is no loss") {
  join_attempt();
  peer.send(JobEnd{});
  wait_for("end 0");
  peer.stop_listening();
  relay.refuse();
  REQUIRE(run_until([&] { return peer.ended(); }));
  bool closed = false;
  link->close([&] { closed = true; });
  CHECK(!closed);
  CHECK(run_until([&] { return closed; }));
  CHECK(!called("lost"));
}

TEST_CASE_FIXTURE(RemoteLinkTest, "the last word arrives before the connection closes") {
  join_attempt();
  bool closed = false;
  SUBCASE("goodbye after the end") {
    peer.send(JobEnd{});
    wait_for("end 0");
    link->close([&] { closed = true; });
    REQUIRE(run_until([&] { return closed; }));
    CHECK(peer.count<message::Goodbye>() == 1);
  }
  SUBCASE("leave before it") {
    link->close([&] { closed = true; });
    REQUIRE(run_until([&] { return closed; }));
    CHECK(peer.count<message::Leave>() == 1);
  }
  SUBCASE("leave, and closed later") {
    link->leave();
    REQUIRE(run_until([&] { return peer.count<message::Leave>() == 1; }));
    link->close([&] { closed = true; });
    REQUIRE(run_until([&] { return closed; }));
    CHECK(peer.count<message::Goodbye>() == 0);
  }
  CHECK(!called("lost"));
}

TEST_CASE_FIXTURE(RemoteLinkTest, "a coordinator that ignores a goodbye does not keep the node") {
  join_attempt();
  peer.send(JobEnd{});
  wait_for("end 0");
  relay.freeze();
  bool closed = false;
  link->close([&] { closed = true; });
  CHECK(run_until([&] { return closed; }));
}

TEST_CASE_FIXTURE(RemoteLinkTest, "a clock that differs is measured and, by much, reported") {
  peer.set_clock_ahead(5'000'000);
  join();
  REQUIRE(run_until([&] { return !own_events.empty(); }));
  const auto& trouble = std::get<event::Trouble>(own_events[0]);
  CHECK(trouble.subject == "clock");
  CHECK(trouble.message.find(" behind the coordinator's") != std::string::npos);
  CHECK(link->clock_offset_us() > 4'000'000);
  CHECK(link->clock_offset_us() < 6'000'000);
  REQUIRE(run_until([&] { return peer.last<message::Heartbeat>()->clock_offset_us > 4'000'000; }));
  CHECK(own_events.size() == 1);
}

}  // namespace muster
