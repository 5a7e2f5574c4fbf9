// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/event_gate.h"

#include <doctest/doctest.h>

#include "supervisor/rendezvous/silence_watch.h"

namespace muster {

namespace {

EventGate gate_of(int first_rank, int workers, int attempt = 0) {
  NodeFacts facts;
  facts.host = "b";
  facts.workers = workers;
  EventGate gate(facts, 2);
  Assignment assignment;
  assignment.attempt = attempt;
  assignment.node = 3;
  assignment.first_rank = first_rank;
  gate.assigned(assignment);
  return gate;
}

}  // namespace

TEST_CASE("before its first assignment an agent has nothing to write about") {
  NodeFacts facts;
  facts.workers = 2;
  EventGate gate(facts, 2);
  message::Events events;
  events.events = {event::WorkerSpawned{-1, 0, 0, 1}, event::Trouble{"a", "b"}};
  CHECK(gate.pass(events).empty());
}

TEST_CASE("what an agent finds left over is told as its own") {
  EventGate gate = gate_of(4, 1);
  message::Events events;
  events.events = {event::LeftoverFound{77, "dd", "D", "", false, "stays", "another"}};
  const std::vector<EventBody> passed = gate.pass(events);
  REQUIRE(passed.size() == 1);
  CHECK(std::get<event::LeftoverFound>(passed[0]).host == "b");
}

TEST_CASE("ranks at the largest number do not wrap around") {
  EventGate gate = gate_of(0x7FFFFFF0, 100);
  message::Events events;
  events.events = {event::WorkerSpawned{0, 0x7FFFFFFF, 0, 1},
                   event::WorkerSpawned{0, -0x7FFFFFFF, 0, 1}};
  CHECK(gate.pass(events).size() == 1);
}

TEST_CASE("each attempt has its own budget") {
  EventGate gate = gate_of(4, 1);
  message::Events events;
  events.events.assign(200, event::Trouble{"logs", "x"});
  CHECK(gate.pass(events).size() == 103);  // 2 + 100 and the line that says so
  CHECK(gate.pass(events).empty());
  Assignment next;
  next.attempt = 1;
  gate.assigned(next);
  CHECK(gate.pass(events).size() == 103);
}

TEST_CASE("a failure is given the host and the node of whoever tells it") {
  EventGate gate = gate_of(4, 2);
  event::FailureFound failure;
  failure.host = "another";
  for (int rank : {-1, 4, 5}) {
    failure.rank = rank;
    CHECK(gate.own(failure));
    CHECK(failure.host == "b");
    CHECK(failure.node == 3);
  }
  for (int rank : {3, 6, -2}) {
    failure.rank = rank;
    CHECK_FALSE(gate.own(failure));
  }
}

TEST_CASE("silence is found in the order of the last words") {
  SilenceWatch watch(Milliseconds(3000));
  const Clock::time_point start{};
  auto at = [&](int ms) { return start + Milliseconds(ms); };
  CHECK_FALSE(watch.next());
  auto a = watch.add("a", at(0));
  auto b = watch.add("b", at(100));
  watch.add("c", at(200));
  CHECK(*watch.next() == at(3000));
  watch.heard(a, at(1000));
  CHECK(*watch.next() == at(3100));
  CHECK(watch.silent(at(3099)).empty());
  CHECK(watch.silent(at(3200)) == std::vector<std::string>{"b", "c"});
  watch.remove(b);
  CHECK(watch.silent(at(9000)) == std::vector<std::string>{"c", "a"});
}

}  // namespace muster
