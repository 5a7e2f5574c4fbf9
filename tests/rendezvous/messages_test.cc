// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/messages.h"

#include <doctest/doctest.h>

#include "supervisor/cli/failure_policy.h"

namespace muster {

namespace {

Frame frame_of(const std::string& bytes) {
  return {static_cast<uint8_t>(bytes[4]), std::string_view(bytes).substr(5)};
}

template <typename T>
T agent_round_trip(T message) {
  const std::string bytes = encode(AgentMessage(std::move(message)));
  Result<AgentMessage> back = decode_agent_message(frame_of(bytes));
  if (!back) MESSAGE(back.error().message);
  REQUIRE(back);
  CHECK(encode(AgentMessage(*back)) == bytes);
  REQUIRE(std::holds_alternative<T>(*back));
  return std::get<T>(*back);
}

template <typename T>
T host_round_trip(T message) {
  const std::string bytes = encode(HostMessage(std::move(message)));
  Result<HostMessage> back = decode_host_message(frame_of(bytes));
  if (!back) MESSAGE(back.error().message);
  REQUIRE(back);
  CHECK(encode(HostMessage(*back)) == bytes);
  REQUIRE(std::holds_alternative<T>(*back));
  return std::get<T>(*back);
}

event::FailureFound some_failure(size_t lines = 2, const std::string& text = "boom") {
  event::FailureFound failure;
  failure.attempt = 3;
  failure.rank = 5;
  failure.local_rank = 1;
  failure.host = text;
  failure.node = 2;
  failure.pid = 4711;
  failure.kind = text;
  failure.signal = 9;
  failure.exit_code = 137;
  failure.message = text;
  failure.excerpt.assign(lines, text);
  failure.excerpt_source = text;
  failure.line = text;
  failure.line_source = text;
  failure.evidence.assign(lines, text);
  failure.note = text;
  failure.victim = true;
  failure.blames = text;
  failure.can_heal = false;
  failure.ran_us = 12;
  failure.time_us = 1'700'000'000'000'000;
  failure.stdout_log = text;
  failure.stderr_log = text;
  return failure;
}

NodeFacts some_facts() {
  NodeFacts facts;
  facts.id = "abc";
  facts.host = "node-a";
  facts.pid = 7;
  facts.workers = 8;
  facts.role = "trainer";
  facts.node_rank = 3;
  facts.address = "10.0.0.1";
  facts.endpoint_host = "node-0";
  facts.log_dir = "/logs/run";
  facts.started_by = "ann";
  facts.spare_port = 1234;
  facts.attempt = 2;
  facts.terms = {2, 4, 3, true, false, "segfault=stop", "3/10", "1:60"};
  return facts;
}

std::string decode_error(const std::string& like, std::string_view body) {
  const uint8_t kind = frame_of(like).kind;
  if (kind < 64) {
    Result<AgentMessage> got = decode_agent_message({kind, body});
    return got ? "" : got.error().message;
  }
  Result<HostMessage> got = decode_host_message({kind, body});
  return got ? "" : got.error().message;
}

}  // namespace

TEST_CASE("what an agent says survives the way to the coordinator") {
  message::Hello hello = agent_round_trip(message::Hello{1, "run-7", "nonce", true});
  CHECK(hello.run_id == "run-7");
  CHECK(hello.nonce == "nonce");
  CHECK(hello.has_token);

  message::Join join = agent_round_trip(message::Join{some_facts(), "proof", -5});
  CHECK(join.proof == "proof");
  CHECK(join.clock_offset_us == -5);
  CHECK(join.facts.id == "abc");
  CHECK(join.facts.host == "node-a");
  CHECK(join.facts.pid == 7);
  CHECK(join.facts.workers == 8);
  CHECK(join.facts.role == "trainer");
  CHECK(join.facts.node_rank == 3);
  CHECK(join.facts.address == "10.0.0.1");
  CHECK(join.facts.endpoint_host == "node-0");
  CHECK(join.facts.log_dir == "/logs/run");
  CHECK(join.facts.started_by == "ann");
  CHECK(join.facts.spare_port == 1234);
  CHECK(join.facts.attempt == 2);
  CHECK(join.facts.terms.min_nodes == 2);
  CHECK(join.facts.terms.max_nodes == 4);
  CHECK(join.facts.terms.max_restarts == 3);
  CHECK(join.facts.terms.restart_always);
  CHECK_FALSE(join.facts.terms.agent_store);
  CHECK(join.facts.terms.failure_policy == "segfault=stop");
  CHECK(join.facts.terms.same_failure_limit == "3/10");
  CHECK(join.facts.terms.restart_backoff == "1:60");
  NodeFacts unranked = some_facts();
  unranked.node_rank.reset();
  CHECK_FALSE(agent_round_trip(message::Join{unranked, "", 0}).facts.node_rank);

  message::Heartbeat beat = agent_round_trip(message::Heartbeat{1'700'000'000'000'000, -3});
  CHECK(beat.sent_us == 1'700'000'000'000'000);
  CHECK(beat.clock_offset_us == -3);

  FailureNotice notice = agent_round_trip(FailureNotice{3, some_failure()});
  CHECK(notice.attempt == 3);
  CHECK(notice.preliminary.rank == 5);
  CHECK(notice.preliminary.time_us == 1'700'000'000'000'000);

  NodeOutcome outcome{3,    true, true, some_failure(), {some_failure()}, {{"0-2", "why"}},
                      true, "oh"};
  outcome = agent_round_trip(outcome);
  CHECK(outcome.early);
  CHECK(outcome.complete);
  CHECK(outcome.root->pid == 4711);
  CHECK(outcome.others.size() == 1);
  CHECK(outcome.victims.at(0).ranks == "0-2");
  CHECK(outcome.left_running);
  CHECK(outcome.trouble == "oh");
  outcome.suspects = {some_failure()};
  outcome.finished = "0-2,7";
  CHECK(agent_round_trip(outcome).suspects.at(0).pid == 4711);
  CHECK(agent_round_trip(outcome).finished == "0-2,7");
  CHECK_FALSE(agent_round_trip(NodeOutcome{}).root);
  CHECK(agent_round_trip(NodeOutcome{}).operations.empty());
  auto operations = std::make_shared<RankOperations>();
  operations->communicators.emplace_back().id = 77;
  NodeOutcome told;
  told.operations = {{5, RankEnd::kDied, 0, operations}, {6, RankEnd::kRunning, 0, nullptr}};
  const NodeOutcome back = agent_round_trip(told);
  REQUIRE(back.operations.size() == 2);
  CHECK(back.operations[0].rank == 5);
  CHECK(back.operations[0].operations->communicators.at(0).id == 77);

  message::StopRequest request =
      agent_round_trip(message::StopRequest{{15, 12, 1000, "user ann, kill", false, "a"}, true});
  CHECK(request.signal.sender == "user ann, kill");
  CHECK(request.kill);
  agent_round_trip(message::Leave{});
  agent_round_trip(message::Goodbye{});
  CHECK(agent_round_trip(message::RestartRequest{"HTTP from 127.0.0.1"}).who ==
        "HTTP from 127.0.0.1");
}

TEST_CASE("an answer to a forwarded request survives the way, bytes and all") {
  const message::Answer answer =
      agent_round_trip(message::Answer{7, 206, {{"etag", "\"1\""}}, 1 << 30});
  CHECK(answer.id == 7);
  CHECK(answer.status == 206);
  CHECK(answer.headers == HttpHeaders{{"etag", "\"1\""}});
  CHECK(answer.length == 1 << 30);
  std::string bytes;
  for (int i = 0; i < 1'000; ++i)
    bytes += static_cast<char>(i);
  const message::Piece piece = agent_round_trip(message::Piece{int64_t{1} << 40, bytes});
  CHECK(piece.id == int64_t{1} << 40);
  CHECK(piece.bytes == bytes);
  CHECK(agent_round_trip(message::AnswerEnd{8}).id == 8);
  CHECK(agent_round_trip(message::AnswerBroken{9}).id == 9);
  RankSample sample;
  sample.rank = 3;
  sample.loss = 0.5;
  const message::Samples samples = agent_round_trip(message::Samples{2, {sample}});
  CHECK(samples.attempt == 2);
  CHECK(samples.samples.at(0).loss == 0.5);
}

TEST_CASE("a forwarded request survives the way") {
  const message::Request request =
      host_round_trip(message::Request{7, "/log?q=a%22", {{"range", "bytes=1-"}}, 65'536});
  CHECK(request.id == 7);
  CHECK(request.target == "/log?q=a%22");
  CHECK(request.headers == HttpHeaders{{"range", "bytes=1-"}});
  CHECK(request.credit == 65'536);
  const message::Credit credit = host_round_trip(message::Credit{7, 4'096});
  CHECK(credit.id == 7);
  CHECK(credit.bytes == 4'096);
  CHECK(host_round_trip(message::Cancel{7}).id == 7);
  const message::Watch watch = host_round_trip(message::Watch{1'000, 5'000});
  CHECK(watch.every_ms == 1'000);
  CHECK(watch.for_ms == 5'000);
  CHECK(host_round_trip(message::RestartRefused{"no"}).why == "no");
}

TEST_CASE("what does not fit into a forwarded request or its answer is refused") {
  const std::string request = encode(HostMessage(message::Request{1, "/", {}, 0}));
  CHECK(decode_error(request, R"({"id":0,"target":"/"})") == "request: bad id");
  CHECK(decode_error(request, R"({"id":1,"target":"x"})") == "request: bad target");
  CHECK(decode_error(request, R"({"id":1,"target":"/a b"})") == "request: bad target");
  CHECK(decode_error(request, R"({"id":1,"target":"/","credit":-1})") == "request: bad credit");
  const std::string answer = encode(AgentMessage(message::Answer{1, 200, {}, -1}));
  CHECK(decode_error(answer, R"({"id":1,"status":99})") == "answer: bad status");
  CHECK(decode_error(answer, R"({"id":1,"length":-2})") == "answer: bad length");
  for (const char* header :
       {R"({"name":"a\r\nb","value":""})", R"({"name":"a","value":"\r\nb: c"})",
        R"({"name":"A","value":""})", R"({"name":"","value":"x"})"}) {
    CHECK(decode_error(answer, R"({"id":1,"headers":[)" + std::string(header) + "]}") ==
          "answer: bad headers");
  }
  CHECK(decode_error(answer, R"({"id":1,"headers":["x"]})") == "answer: bad headers");

  std::string id;
  append_u64(id, 1);
  const std::string piece = encode(AgentMessage(message::Piece{1, "x"}));
  CHECK(decode_error(piece, id) == "piece: bad size");
  CHECK(decode_error(piece, id + std::string(kMaxPiece, 'x')) == "");
  CHECK(decode_error(piece, id + std::string(kMaxPiece + 1, 'x')) == "piece: bad size");
  CHECK(decode_error(piece, "short") == "piece: bad size");
  CHECK(decode_error(piece, std::string(8, '\xff') + "x") == "piece: bad id");
  const std::string credit = encode(HostMessage(message::Credit{1, 1}));
  CHECK(decode_error(credit, id + std::string(8, '\0')) == "credit: bad bytes");
  CHECK(decode_error(credit, id + std::string(8, '\x7f')) == "credit: bad bytes");
  CHECK(decode_error(encode(HostMessage(message::Cancel{1})), std::string(8, '\0')) ==
        "cancel: bad id");
  CHECK(decode_error(encode(HostMessage(message::Watch{})), R"({"every_ms":1})") ==
        "watch: bad every_ms");
  CHECK(decode_error(encode(AgentMessage(message::Samples{0, {}})), "\x02") == "samples: bad body");
}

TEST_CASE("what the coordinator says survives the way to an agent") {
  message::Challenge challenge = host_round_trip(message::Challenge{1, "n", "p", 99});
  CHECK(challenge.nonce == "n");
  CHECK(challenge.proof == "p");
  CHECK(challenge.time_us == 99);
  message::Refuse refuse = host_round_trip(message::Refuse{"no room", true});
  CHECK(refuse.reason == "no room");
  CHECK(refuse.final);
  message::Welcome welcome = host_round_trip(message::Welcome{true, true, 500, 7});
  CHECK(welcome.spare);
  CHECK(welcome.resumed);
  CHECK(welcome.heartbeat_ms == 500);
  CHECK(welcome.heartbeat_misses == 7);
  message::HeartbeatEcho echo = host_round_trip(message::HeartbeatEcho{5, 6});
  CHECK(echo.sent_us == 5);
  CHECK(echo.time_us == 6);
  Assignment assignment{3, 1, 2, 4, 16, 32, 8, 16, "10.0.0.1", 29500, {{0, "a", 0, 8}}};
  assignment = host_round_trip(assignment);
  CHECK(assignment.restart_count == 1);
  CHECK(assignment.role_first_rank == 8);
  CHECK(assignment.master_addr == "10.0.0.1");
  CHECK(assignment.nodes.empty());  // O(nodes) bytes for each would be their square
  StopOrder order = host_round_trip(StopOrder{3, 12, StopReason::kMembership, true, "node-c"});
  CHECK(order.reason == StopReason::kMembership);
  CHECK(order.signal == 12);
  CHECK(order.why == "node-c");
  AttemptVerdict sent{3, some_failure(), {some_failure()}, {{"1", "x"}}, true, 2};
  sent.no_restart = "why";
  sent.delay_ms = 4'000;
  sent.excluded = 1;
  AttemptVerdict verdict = host_round_trip(sent);
  CHECK(verdict.no_restart == "why");
  CHECK(verdict.delay_ms == 4'000);
  CHECK(verdict.excluded == 1);
  CHECK_FALSE(verdict.early);
  sent.early = true;
  CHECK(host_round_trip(sent).early);
  CHECK(verdict.root->host == "boom");
  CHECK(verdict.restarts);
  CHECK(verdict.restart_count == 2);
  JobEnd end = host_round_trip(JobEnd{Outcome::kStopped, 143, "why", "kind"});
  CHECK(end.outcome == Outcome::kStopped);
  CHECK(end.exit_code == 143);
  CHECK(end.why == "why");
  CHECK(end.kind == "kind");
  event::NodesAwaited awaited = host_round_trip(event::NodesAwaited{1, 2, 4, {"a (8)"}, 50, "t"});
  CHECK(awaited.hosts.at(0) == "a (8)");
  CHECK(awaited.left_ms == 50);
}

TEST_CASE("a heartbeat and its echo have 21 bytes") {
  CHECK(encode(AgentMessage(message::Heartbeat{1, 2})).size() == 21);
  CHECK(encode(HostMessage(message::HeartbeatEcho{1, 2})).size() == 21);
}

TEST_CASE("of the events only those of use at the coordinator travel") {
  message::Events sent;
  sent.attempt = 4;
  sent.events = {event::WorkerSpawned{4, 1, 1, 50},
                 event::JobStarted{},
                 event::SpawnFailed{4, 2, 0, 2, "no such file"},
                 event::FirstOutput{4, 1, Stream::kStderr},
                 event::WorkerExited{4, 1, 1, 50, 256, 7},
                 event::SignalSent{4, 1, 50, 15, false, StopReason::kFailure},
                 event::LeftoverFound{77, "dd", "D", "", false, "stays"},
                 event::Trouble{"logs", "disk full"},
                 event::JobEnded{}};
  message::Events got = agent_round_trip(sent);
  CHECK(got.attempt == 4);
  REQUIRE(got.events.size() == 7);
  CHECK(std::get<event::SpawnFailed>(got.events[1]).message == "no such file");
  CHECK(std::get<event::WorkerExited>(got.events[3]).wait_status == 256);
}

TEST_CASE("events of a later version are skipped, more than a message may have are refused") {
  const std::string like = encode(AgentMessage(message::Events{}));
  Result<AgentMessage> got = decode_agent_message(
      {frame_of(like).kind, R"({"attempt":1,"events":[{"event":"melted"},)"
                            R"({"event":"worker_spawned","rank":3,"shine":[]}]})"});
  REQUIRE(got);
  CHECK(std::get<message::Events>(*got).events.size() == 1);
  std::string many = R"({"events":[{"event":"trouble"})";
  for (size_t i = 0; i < kMaxEventsPerMessage; ++i)
    many += R"(,{"event":"trouble"})";
  CHECK(decode_error(like, many + "]}") == "events: bad events");
  message::Events sent;
  sent.events.assign(kMaxEventsPerMessage + 1, event::Trouble{"a", "b"});
  CHECK(agent_round_trip(sent).events.size() == kMaxEventsPerMessage);
}

namespace {

std::vector<KnownRank> many_operations() {
  auto operations = std::make_shared<RankOperations>();
  operations->communicators.resize(kMaxRankCommunicators);
  for (RankCommunicator& communicator : operations->communicators)
    communicator.calls.resize(kMaxOpenCalls + kMaxDoneCalls);
  return std::vector<KnownRank>(1000, {1, RankEnd::kRunning, 0, operations});
}

}  // namespace

TEST_CASE("news is as old as it says, unless that cannot be") {
  constexpr int64_t kNow = 1'700'000'000'000'000;
  CHECK(time_of_news_us(kNow, kNow) == kNow);
  CHECK(time_of_news_us(kNow - 600'000, kNow) == kNow - 600'000);
  CHECK(time_of_news_us(kNow + 1, kNow) == kNow);
  CHECK(time_of_news_us(kNow - kMaxNewsAgeUs, kNow) == kNow);
  CHECK(time_of_news_us(0, kNow) == 0);
}

TEST_CASE("the largest of everything fits into a frame") {
  const std::string wide(5'000, '"');  // each becomes two
  std::string tall;
  for (int i = 0; i < 1'500; ++i)
    tall += "\xF0\x9F\x94\xA5";
  for (const std::string& text : {wide, tall, std::string(5'000, '\x80')}) {
    const event::FailureFound failure = some_failure(65, text);
    const std::vector<event::FailureFound> others(9, failure);
    const std::vector<event::VictimGroup> victims(9, {text, text});
    NodeOutcome outcome{1, false, false, failure, others, victims, true, text};
    outcome.suspects = others;
    outcome.finished = text;
    outcome.operations = many_operations();
    CHECK(encode(AgentMessage(outcome)).size() < kMaxFrame);
    AttemptVerdict verdict{1, failure, others, victims, true, 1};
    verdict.no_restart = text;
    verdict.collectives.found.assign(100, {text, text, text, 1, 1, text, text, text, 1, text});
    CHECK(encode(HostMessage(verdict)).size() < kMaxFrame);
    message::Events events;
    events.events.assign(kMaxEventsPerMessage + 1, event::Trouble{text, text});
    CHECK(encode(AgentMessage(events)).size() < kMaxFrame);
    HttpHeaders headers(100, {"x", std::string(2'000, '"')});
    CHECK(encode(HostMessage(message::Request{1, "/", headers, 1})).size() < kMaxFrame);
    CHECK(encode(AgentMessage(message::Answer{1, 200, headers, 1})).size() < kMaxFrame);
    NodeFacts facts = some_facts();
    for (std::string* field : {&facts.id, &facts.host, &facts.role, &facts.address,
                               &facts.endpoint_host, &facts.log_dir, &facts.started_by})
      *field = text;
    facts.terms.failure_policy = std::string(kMaxPolicyText, 'k');
    CHECK(encode(AgentMessage(message::Join{facts, std::string(64, 'f'), 0})).size() <
          kMaxHandshakeFrame);
  }
}

TEST_CASE("long lists of ranks are cut between two numbers") {
  std::string ranks;
  for (int rank = 100'001; rank < 101'000; rank += 2)
    ranks += (ranks.empty() ? "" : ",") + std::to_string(rank);
  auto whole = [&](const std::string& cut) {
    return cut.ends_with(",...") && ranks.starts_with(cut.substr(0, cut.size() - 3));
  };
  NodeOutcome outcome;
  outcome.victims = {{ranks, "stopped by muster"}};
  CHECK(whole(agent_round_trip(outcome).victims.at(0).ranks));
  AttemptVerdict verdict;
  event::CollectiveFinding& finding = verdict.collectives.found.emplace_back();
  finding.suspects = finding.waiting = ranks;
  const AttemptVerdict got = host_round_trip(verdict);
  CHECK(whole(got.collectives.found.at(0).suspects));
  CHECK(whole(got.collectives.found.at(0).waiting));
}

TEST_CASE("of another cause than the root the end of its excerpt is kept") {
  NodeOutcome outcome;
  outcome.root = some_failure(200);
  outcome.others = {some_failure(200)};
  outcome.others[0].excerpt.back() = "last";
  outcome = agent_round_trip(outcome);
  CHECK(outcome.root->excerpt.size() == 64);
  REQUIRE(outcome.others[0].excerpt.size() == 4);
  CHECK(outcome.others[0].excerpt.back() == "last");
}

TEST_CASE("no text of a peer drives a terminal") {
  const std::string like = encode(HostMessage(message::Refuse{}));
  Result<HostMessage> got =
      decode_host_message({frame_of(like).kind, R"({"reason":"a\u001b[2Jb\u0007c\u009b\nd"})"});
  REQUIRE(got);
  CHECK(std::get<message::Refuse>(*got).reason == "abcd");
}

TEST_CASE("what is no message is an error that says what is wrong") {
  const std::string join = encode(AgentMessage(message::Join{some_facts(), "", 0}));
  const std::string hello = encode(AgentMessage(message::Hello{1, "r", "", false}));
  const std::string assign = encode(HostMessage(Assignment{}));
  CHECK(decode_error(join, "") == "join: bad body");
  CHECK(decode_error(join, "[]") == "join: bad body");
  CHECK(decode_error(join, "{\"facts\":1}") == "join: bad facts");
  CHECK(decode_error(join, R"({"facts":{"id":"a","workers":"8"}})") == "join: bad facts");
  CHECK(decode_error(join, R"({"facts":{"workers":8}})") == "join: bad id");
  CHECK(decode_error(join, R"({"facts":{"id":"a","workers":0}})") == "join: bad workers");
  CHECK(decode_error(join, R"({"facts":{"id":"a","workers":65537}})") == "join: bad workers");
  CHECK(decode_error(join, R"({"facts":{"id":"a","workers":1,"node_rank":-1}})") ==
        "join: bad node_rank");
  CHECK(decode_error(join, R"({"facts":{"id":"a","workers":1},"clock_offset_us":)"
                           R"(9223372036854775807})") == "join: bad clock_offset_us");
  CHECK(decode_error(hello, R"({"run_id":""})") == "hello: bad run_id");
  CHECK(decode_error(hello, R"({"run_id":")" + std::string(kMaxRunId + 1, 'r') + "\"}") ==
        "hello: bad run_id");
  const std::string told = encode(HostMessage(AttemptVerdict{}));
  CHECK(decode_error(told, R"({"delay_ms":-1})") == "verdict: bad delay_ms");
  CHECK(decode_error(told, R"({"excluded":-2})") == "verdict: bad excluded");
  CHECK(decode_error(told, R"({"early":true})") == "verdict: bad root");
  CHECK(decode_error(assign, R"({"node":1,"node_count":1})") == "assign: bad node");
  CHECK(decode_error(assign, R"({"first_rank":1,"world_size":1})") == "assign: bad first_rank");
  CHECK(decode_error(encode(AgentMessage(message::Heartbeat{})), "short") == "heartbeat: bad size");
  CHECK(decode_agent_message({200, "{}"}).error().message == "a message of unknown kind 200");
}

TEST_CASE("a body that nests deep is not parsed") {
  const std::string like = encode(AgentMessage(message::Hello{1, "r", "", false}));
  CHECK(decode_error(
            like, R"({"run_id":"r","x":)" + std::string(7, '[') + std::string(7, ']') + "}") == "");
  CHECK(decode_error(like, R"({"run_id":"r","x":)" + std::string(8, '[') + std::string(8, ']') +
                               "}") == "hello: bad body");
  CHECK(decode_error(like, R"({"run_id":"r","x":"[[[[[[[[[[\"[[[["})") == "");
}

TEST_CASE("the offset of two clocks is taken in the middle of the way") {
  CHECK(clock_offset_us(1000, 5100, 1200) == 4000);
  CHECK(clock_offset_us(5000, 1100, 5200) == -4000);
}

}  // namespace muster
