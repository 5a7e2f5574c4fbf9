// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/event_queue.h"

#include <doctest/doctest.h>

namespace muster {

namespace {

Event event_of(EventBody body) {
  Event event;
  event.body = std::move(body);
  return event;
}

Event exit_of(int attempt, int rank) {
  event::WorkerExited exited;
  exited.attempt = attempt;
  exited.rank = rank;
  return event_of(exited);
}

}  // namespace

TEST_CASE("events that others need not know are left out") {
  EventQueue queue("node-b");
  CHECK(!queue.add(event_of(event::JobStarted{})));
  CHECK(!queue.add(event_of(event::NodesAwaited{})));
  CHECK(!queue.add(event_of(event::FailureFound{})));
  CHECK(queue.empty());
  CHECK(queue.add(exit_of(0, 3)));
  CHECK(!queue.empty());
}

TEST_CASE("a batch is of one attempt and bounded") {
  EventQueue queue("node-b");
  for (size_t i = 0; i <= kMaxEventsPerMessage; ++i)
    queue.add(exit_of(1, static_cast<int>(i)));
  queue.add(exit_of(2, 0));
  CHECK(queue.take().events.size() == kMaxEventsPerMessage);
  message::Events second = queue.take();
  CHECK(second.attempt == 1);
  CHECK(second.events.size() == 1);
  CHECK(queue.take().attempt == 2);
  CHECK(queue.empty());
}

TEST_CASE("beyond the limit the oldest events are dropped, counted and the count is told") {
  EventQueue queue("node-b");
  for (size_t i = 0; i < kMaxQueuedEvents + 5; ++i)
    queue.add(exit_of(0, static_cast<int>(i)));
  message::Events batch = queue.take();
  REQUIRE(std::holds_alternative<event::Trouble>(batch.events[0]));
  CHECK(std::get<event::Trouble>(batch.events[0]).message.starts_with("5 events of node-b "));
  CHECK(std::get<event::WorkerExited>(batch.events[1]).rank == 5);
  CHECK(batch.events.size() == kMaxEventsPerMessage);
  CHECK(std::holds_alternative<event::WorkerExited>(queue.take().events[0]));
}

TEST_CASE("trouble says which node has it") {
  EventQueue queue("node-b");
  queue.add(event_of(event::Trouble{"logs", "disk full"}));
  CHECK(std::get<event::Trouble>(queue.take().events[0]).message == "node-b: disk full");
}

}  // namespace muster
