// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/coordinator_host.h"

#include <doctest/doctest.h>

#include "loop/loop_test.h"
#include "rendezvous/test_agent.h"

namespace muster {

namespace {

const std::string kRun = "run-1";
const std::string kToken = "sesame sesame sesame";

// A host whose own node is "a"; two nodes make the job.
struct HostTest : LoopTest {
  CoordinatorHost::Settings settings;
  CoordinatorHost::Limits limits;
  std::vector<EventBody> record;
  std::vector<std::string> lines;
  std::vector<std::string> story;  // what the agent in this process was told, and records
  std::vector<Assignment> assignments;
  std::vector<StopOrder> stops;
  std::vector<AttemptVerdict> verdicts;
  std::vector<JobEnd> ends;
  std::string refused;
  bool closed = false;
  std::unique_ptr<CoordinatorHost> host;

  HostTest() {
    settings.run_id = kRun;
    settings.coordinator.terms = facts_of("a").terms;
    settings.coordinator.host_id = "id-a";
    settings.coordinator.fallback_address = "127.0.0.1";
  }

  void start(bool with_store = true) {
    std::unique_ptr<StoreServer> store;
    if (with_store) {
      auto listening = StoreServer::listen(loop, "127.0.0.1", 0, {[](const std::string&) {}});
      REQUIRE(listening);
      store = std::move(*listening);
      settings.coordinator.store_port = store->port();
    }
    CoordinatorHost::LocalAgent local;
    local.on_welcome = [this](bool) { story.push_back("welcome"); };
    local.on_refused = [this](const std::string& why) { refused = why; };
    local.on_assignment = [this](const Assignment& a) {
      story.push_back("assignment");
      assignments.push_back(a);
    };
    local.on_stop = [this](const StopOrder& order) { stops.push_back(order); };
    local.on_verdict = [this](const AttemptVerdict& verdict) { verdicts.push_back(verdict); };
    local.on_end = [this](const JobEnd& end) { ends.push_back(end); };
    CoordinatorHost::Callbacks callbacks;
    callbacks.on_record = [this](EventBody body) {
      if (std::holds_alternative<event::WorkerSpawned>(body)) story.push_back("spawned");
      record.push_back(std::move(body));
    };
    callbacks.on_say = [this](const std::string& line) { lines.push_back(line); };
    callbacks.on_closed = [this] { closed = true; };
    host = std::make_unique<CoordinatorHost>(loop, settings, std::move(store), local, callbacks,
                                             limits);
  }

  TestAgent connect() { return TestAgent(loop, host->store()->port()); }

  // A two-node attempt that runs, of the host's node and `agent`, which is "b".
  Assignment run_with(TestAgent& agent, int workers = 1) {
    host->join(facts_of("a"));
    agent.join(facts_of("b", workers), kRun, settings.token);
    const Assignment assignment = agent.hear_a<Assignment>();
    REQUIRE(run_until([&] { return !assignments.empty(); }));
    return assignment;
  }

  template <typename T>
  std::vector<T> recorded() const {
    std::vector<T> found;
    for (const EventBody& body : record)
      if (auto* event = std::get_if<T>(&body)) found.push_back(*event);
    return found;
  }

  bool said(const std::string& part) const {
    for (const std::string& line : lines)
      if (line.find(part) != std::string::npos) return true;
    return false;
  }
};

event::FailureFound failure_of(int rank, int64_t time_us = 0) {
  event::FailureFound failure;
  failure.rank = rank;
  failure.kind = "exit_code";
  failure.exit_code = 3;
  failure.message = "exited with 3";
  failure.time_us = time_us;
  return failure;
}

}  // namespace

TEST_CASE_FIXTURE(HostTest, "one node alone needs no store and no wire") {
  settings.coordinator.terms.min_nodes = settings.coordinator.terms.max_nodes = 1;
  start(false);
  NodeFacts facts = facts_of("a", 4);
  facts.terms = settings.coordinator.terms;
  host->join(facts);
  CHECK(story.empty());  // never inside a call
  REQUIRE(run_until([&] { return assignments.size() == 1; }));
  CHECK(story == std::vector<std::string>{"welcome", "assignment"});
  CHECK(assignments[0].world_size == 4);
  NodeOutcome outcome;
  outcome.complete = true;
  host->settled(outcome);
  REQUIRE(run_until([&] { return ends.size() == 1; }));
  CHECK(ends[0].outcome == Outcome::kSucceeded);
  host->goodbye();
  CHECK(run_until([&] { return closed; }));
}

TEST_CASE_FIXTURE(HostTest, "who wants to join a job of one node is told so") {
  settings.coordinator.terms.min_nodes = settings.coordinator.terms.max_nodes = 1;
  start();
  TestAgent other = connect();
  other.say(message::Hello{kControlVersion, "run-2", "", false});
  CHECK(other.hear_a<message::Refuse>().reason.find("has the run id 'run-1'") != std::string::npos);
  TestAgent agent = connect();
  NodeFacts facts = facts_of("b");
  facts.terms = settings.coordinator.terms;
  agent.ask_to_join(facts, kRun);
  CHECK(agent.hear_a<message::Refuse>().reason == "the job at this endpoint has one node alone");
  CHECK(host->agents() == 0);
}

TEST_CASE_FIXTURE(HostTest, "two nodes meet, run and go home, the host last") {
  start();
  TestAgent agent = connect();
  const Assignment theirs = run_with(agent);
  CHECK(assignments[0].world_size == 2);
  CHECK(assignments[0].first_rank == 0);
  CHECK(assignments[0].nodes.size() == 2);
  CHECK(theirs.first_rank == 1);
  CHECK(theirs.node == 1);
  CHECK(theirs.master_addr == assignments[0].master_addr);
  CHECK(theirs.master_port == host->store()->port());
  CHECK(recorded<event::NodeJoined>().size() == 2);
  NodeOutcome outcome;
  outcome.complete = true;
  host->settled(outcome);
  agent.say(outcome);
  CHECK(agent.hear_a<JobEnd>().outcome == Outcome::kSucceeded);
  REQUIRE(run_until([&] { return ends.size() == 1; }));
  host->goodbye();
  CHECK_FALSE(closed);
  agent.say(message::Goodbye{});
  CHECK(agent.closed());
  CHECK(run_until([&] { return closed; }));
  CHECK(recorded<event::NodeLost>().empty());
}

TEST_CASE_FIXTURE(HostTest, "who does not say goodbye is not waited for without end") {
  limits.goodbye = Milliseconds(80);
  start();
  TestAgent agent = connect();
  run_with(agent);
  NodeOutcome outcome;
  outcome.complete = true;
  host->settled(outcome);
  agent.say(outcome);
  agent.hear_a<JobEnd>();
  host->goodbye();
  CHECK(agent.closed());
  CHECK(run_until([&] { return closed; }));
  CHECK(said("it did not say goodbye"));
}

TEST_CASE_FIXTURE(HostTest, "what an agent answers is recorded after the assignment here") {
  start();
  host->join(facts_of("a"));
  TestAgent agent = connect();
  agent.join(facts_of("b"), kRun);
  const Assignment assignment = agent.hear_a<Assignment>();
  message::Events events;
  events.events = {event::WorkerSpawned{0, assignment.first_rank, 0, 77}};
  agent.say(events);
  REQUIRE(run_until([&] { return story.size() >= 3; }));
  CHECK(story == std::vector<std::string>{"welcome", "assignment", "spawned"});
}

TEST_CASE_FIXTURE(HostTest,
                  "a failure at one agent stops the others, and the verdict has its host") {
  start();
  TestAgent agent = connect();
  run_with(agent);
  agent.say(FailureNotice{0, failure_of(1)});
  REQUIRE(run_until([&] { return stops.size() == 1; }));
  CHECK(stops[0].reason == StopReason::kFailure);
  CHECK(stops[0].why.find("rank 1 on b") != std::string::npos);
  NodeOutcome theirs;
  theirs.root = failure_of(1);
  agent.say(theirs);
  host->settled({});
  const AttemptVerdict verdict = agent.hear_a<AttemptVerdict>();
  CHECK(verdict.root->host == "b");
  CHECK(verdict.root->rank == 1);
  CHECK(verdict.restarts);
  REQUIRE(run_until([&] { return assignments.size() == 2; }));
  CHECK(agent.hear_a<Assignment>().restart_count == 1);
  CHECK(assignments[1].restart_count == 1);
  CHECK(verdicts[0].root->host == "b");
}

TEST_CASE_FIXTURE(HostTest, "every attempt begins with an empty store") {
  start();
  host->store()->set("/left", "over");
  TestAgent agent = connect();
  run_with(agent);
  CHECK(host->store()->counters().keys == 0);
}

TEST_CASE_FIXTURE(HostTest, "a stop at one agent is everybody's, and the workers' store says it") {
  start();
  TestAgent agent = connect();
  run_with(agent);
  agent.say(message::StopRequest{{15, 9, 1000, "user ann", false, ""}, false});
  REQUIRE(run_until([&] { return stops.size() == 1; }));
  CHECK(stops[0].reason == StopReason::kSignal);
  CHECK(agent.hear_a<StopOrder>().signal == 15);
  CHECK(host->store()->counters().keys == 1);
}

TEST_CASE_FIXTURE(HostTest, "a closed connection is a lost node at once") {
  start();
  TestAgent agent = connect();
  run_with(agent);
  agent.leave();
  REQUIRE(run_until([&] { return !recorded<event::NodeLost>().empty(); }));
  CHECK(recorded<event::NodeLost>()[0].how == "closed");
  CHECK(host->agents() == 0);
}

TEST_CASE_FIXTURE(HostTest, "a node that leaves says so") {
  start();
  TestAgent agent = connect();
  run_with(agent);
  agent.say(message::Leave{});
  REQUIRE(run_until([&] { return !recorded<event::NodeLost>().empty(); }));
  CHECK(recorded<event::NodeLost>()[0].how == "left");
  CHECK(agent.closed());
}

TEST_CASE_FIXTURE(HostTest, "silence is a lost node, heartbeats are answered and keep it") {
  settings.keep_alive_interval = Milliseconds(50);
  start();
  TestAgent agent = connect();
  run_with(agent);
  TestAgent spare = connect();
  CHECK(spare.join(facts_of("c"), kRun).spare);
  // Twice as long as patience lasts.
  for (int i = 0; i < 12; ++i) {
    agent.say(message::Heartbeat{unix_us(), 0});
    CHECK(agent.hear_a<message::HeartbeatEcho>().time_us > 0);
    Owned<Timer> pause = Timer::start(loop, Milliseconds(25), [&] { pause.reset(); });
    run_until([&] { return !pause; });
  }
  REQUIRE(run_until([&] { return recorded<event::NodeLost>().size() == 1; }));
  CHECK(recorded<event::NodeLost>()[0].host == "c");
  CHECK(recorded<event::NodeLost>()[0].how == "silent");
  CHECK(spare.closed());
  REQUIRE(run_until([&] { return recorded<event::NodeLost>().size() == 2; }));
  CHECK(agent.closed());
}

TEST_CASE_FIXTURE(HostTest, "agents are not lost because the host was away") {
  settings.keep_alive_interval = Milliseconds(100);
  start();
  TestAgent agent = connect();
  run_with(agent);
  // The whole process stands still while the agent goes on, as after SIGSTOP and SIGCONT.
  for (int i = 0; i < 3; ++i) {
    usleep(200'000);
    agent.peer().send_some(encode(AgentMessage(message::Heartbeat{1, 0})));
  }
  agent.hear_a<message::HeartbeatEcho>();
  CHECK(recorded<event::NodeLost>().empty());
}

TEST_CASE_FIXTURE(HostTest, "an agent that comes back on a new connection replaces the old one") {
  start();
  TestAgent agent = connect();
  run_with(agent);
  TestAgent again = connect();
  NodeFacts facts = facts_of("b");
  facts.attempt = 0;
  CHECK(again.join(facts, kRun).resumed);
  CHECK(agent.closed());
  CHECK(recorded<event::NodeLost>().empty());
  CHECK(host->agents() == 1);
  again.say(FailureNotice{0, failure_of(1)});
  CHECK(run_until([&] { return stops.size() == 1; }));
}

TEST_CASE_FIXTURE(HostTest, "nobody takes the place of the host's own node") {
  start();
  host->join(facts_of("a"));
  TestAgent agent = connect();
  agent.ask_to_join(facts_of("a"), kRun);
  CHECK(agent.hear_a<message::Refuse>().final);
}

TEST_CASE_FIXTURE(HostTest, "a node whose options differ is told in what") {
  start();
  host->join(facts_of("a"));
  TestAgent agent = connect();
  NodeFacts facts = facts_of("b");
  facts.terms.max_restarts = 7;
  agent.ask_to_join(facts, kRun);
  const message::Refuse refuse = agent.hear_a<message::Refuse>();
  CHECK(refuse.final);
  CHECK(refuse.reason.find("max-restarts") != std::string::npos);
  CHECK(host->agents() == 0);
}

TEST_CASE_FIXTURE(HostTest, "an agent writes about its own ranks alone") {
  start();
  TestAgent agent = connect();
  run_with(agent, 2);  // ranks 1 and 2
  message::Events events;
  events.events = {
      event::WorkerSpawned{0, 0, 0, 70},         event::WorkerSpawned{0, 1, 0, 71},
      event::WorkerExited{0, 2, 1, 72, 0, 0},    event::WorkerExited{0, 3, 2, 73, 0, 0},
      event::FirstOutput{1, 1, Stream::kStdout}, event::Trouble{"logs", "disk full"}};
  agent.say(events);
  REQUIRE(run_until([&] { return !recorded<event::Trouble>().empty(); }));
  CHECK(recorded<event::Trouble>()[0].message == "b: disk full");
  REQUIRE(recorded<event::WorkerSpawned>().size() == 1);
  CHECK(recorded<event::WorkerSpawned>()[0].pid == 71);
  REQUIRE(recorded<event::WorkerExited>().size() == 1);
  CHECK(recorded<event::WorkerExited>()[0].pid == 72);
  CHECK(recorded<event::FirstOutput>().empty());
}

TEST_CASE_FIXTURE(HostTest, "an agent that blames another's rank is dropped") {
  start();
  TestAgent agent = connect();
  run_with(agent);
  SUBCASE("at once") {
    agent.say(FailureNotice{0, failure_of(0)});
  }
  SUBCASE("in its outcome") {
    NodeOutcome outcome;
    outcome.root = failure_of(1);
    outcome.others = {failure_of(0)};
    agent.say(outcome);
  }
  CHECK(agent.closed());
  CHECK(run_until([&] { return said("not its own"); }));
}

TEST_CASE_FIXTURE(HostTest, "an agent that reports without end is cut short, once") {
  limits.max_events_per_worker = 1;
  start();
  TestAgent agent = connect();
  run_with(agent);
  message::Events events;
  events.events.assign(200, event::FirstOutput{0, 1, Stream::kStdout});
  agent.say(events);
  agent.say(events);
  agent.say(message::Heartbeat{1, 0});
  agent.hear_a<message::HeartbeatEcho>();
  REQUIRE(run_until([&] { return !recorded<event::Trouble>().empty(); }));
  CHECK(recorded<event::FirstOutput>().size() == 101);
  REQUIRE(recorded<event::Trouble>().size() == 1);
  CHECK(recorded<event::Trouble>()[0].message.find("b: sent more events") == 0);
}

TEST_CASE_FIXTURE(HostTest,
                  "times of an agent are put on this clock, and a wrong clock is said once") {
  start();
  host->join(facts_of("a"));
  TestAgent agent = connect();
  agent.ask_to_join(facts_of("b"), kRun, "", 5'000'000);
  agent.hear_a<message::Welcome>();
  agent.hear_a<Assignment>();
  agent.say(message::Heartbeat{1, 5'000'001});
  agent.hear_a<message::HeartbeatEcho>();
  NodeOutcome outcome;
  outcome.root = failure_of(1, 1'000'000'000);
  agent.say(outcome);
  REQUIRE(run_until([&] { return !stops.empty(); }));
  host->settled({});
  CHECK(agent.hear_a<AttemptVerdict>().root->time_us == 1'005'000'001);
  REQUIRE(recorded<event::Trouble>().size() == 1);
  CHECK(recorded<event::Trouble>()[0].subject == "clock");
  CHECK(recorded<event::Trouble>()[0].message ==
        "the clock of b is 5.0 s behind; the times of its workers are corrected");
}

TEST_CASE_FIXTURE(HostTest, "an agent that does not read is dropped") {
  limits.max_unsent = 1000;
  start();
  host->join(facts_of("a"));
  TestAgent agent = connect();
  agent.join(facts_of("b"), kRun);
  // Echoes until the kernel takes no more of them.
  const std::string beat = encode(AgentMessage(message::Heartbeat{1, 0}));
  std::string many;
  for (int i = 0; i < 10'000; ++i)
    many += beat;
  CHECK(run_until([&] {
    agent.peer().send_some(many);
    return said("does not read");
  }));
  CHECK(host->agents() == 0);
}

TEST_CASE_FIXTURE(HostTest, "what is no message costs a joined agent its connection, too") {
  start();
  TestAgent agent = connect();
  run_with(agent);
  SUBCASE("an unknown kind") {
    std::string bytes;
    append_frame(bytes, 99, "{}");
    agent.say_raw(bytes);
  }
  SUBCASE("a frame too large") {
    agent.say_raw("\xFF\xFF\xFF\xFF");
  }
  SUBCASE("a second join") {
    agent.say(message::Join{facts_of("b"), "", 0});
  }
  CHECK(agent.closed());
  REQUIRE(run_until([&] { return !recorded<event::NodeLost>().empty(); }));
  CHECK(said("rendezvous: connection of 127.0.0.1:"));
}

TEST_CASE_FIXTURE(HostTest, "a dropped host closes everything and calls nobody") {
  start();
  TestAgent agent = connect();
  run_with(agent);
  TestAgent stranger = connect();
  stranger.greet(kRun);
  host->settled({});
  host.reset();
  CHECK(agent.closed());
  CHECK(stranger.closed());
}

TEST_CASE_FIXTURE(HostTest, "the host may be dropped in what it calls") {
  start();
  bool dropped = false;
  host->join(facts_of("a"));
  TestAgent agent = connect();
  agent.ask_to_join(facts_of("b"), kRun);
  // Also with more to be told behind it.
  CHECK(run_until([&] {
    if (!story.empty() && host) {
      host.reset();
      dropped = true;
    }
    return dropped;
  }));
}

TEST_CASE_FIXTURE(HostTest, "--store-allow: joined nodes and this machine reach the store") {
  settings.store_allow = true;
  start();
  const SocketAddress other = *SocketAddress::parse("192.0.2.7", 1);
  CHECK(host->allows(*SocketAddress::parse("127.0.0.1", 1)));
  CHECK(host->allows(*SocketAddress::parse("::1", 1)));
  CHECK_FALSE(host->allows(other));
  host->join(facts_of("a"));
  TestAgent agent = connect();
  NodeFacts facts = facts_of("b");
  facts.address = "::ffff:192.0.2.7";
  agent.join(facts, kRun);
  CHECK(host->allows(other));
  agent.leave();
  REQUIRE(run_until([&] { return host->agents() == 0; }));
  CHECK_FALSE(host->allows(other));
}

TEST_CASE_FIXTURE(HostTest, "everybody reaches the store unless it is only the door") {
  start();
  CHECK(host->allows(*SocketAddress::parse("192.0.2.7", 1)));
  host.reset();
  settings.coordinator.terms.agent_store = false;
  start();
  CHECK_FALSE(host->allows(*SocketAddress::parse("127.0.0.1", 1)));
  NodeFacts facts = facts_of("b");
  facts.terms.agent_store = false;
  TestAgent agent = connect();
  agent.join(facts, kRun);
}

}  // namespace muster
