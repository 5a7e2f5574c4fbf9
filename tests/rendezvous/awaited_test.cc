// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/awaited.h"

#include <doctest/doctest.h>

namespace muster {

using namespace std::chrono_literals;

namespace {

Roster roster_of(int nodes) {
  Roster roster;
  for (int i = 0; i < nodes; ++i) {
    NodeFacts facts;
    facts.id = std::to_string(i);
    facts.host = std::string(1, static_cast<char>('a' + i));
    facts.workers = 8;
    roster.add(facts);
  }
  return roster;
}

std::string text(int nodes, int min, int max, std::chrono::milliseconds left) {
  JobTerms terms;
  terms.min_nodes = min;
  terms.max_nodes = max;
  return awaited_now(roster_of(nodes), terms, left).text;
}

}  // namespace

TEST_CASE("the waiting line names who is here, how many are missing and the time left") {
  CHECK(text(2, 4, 4, 581s) == "2 of 4 nodes: have a (8), b (8); waiting for 2 more, 09:41 left");
  CHECK(text(0, 2, 2, 10min) == "0 of 2 nodes: have none; waiting for 2 more, 10:00 left");
  CHECK(text(1, 2, 4, 1ms) == "1 of 2:4 nodes: have a (8); waiting for 1 more, 00:01 left");
  CHECK(text(3, 2, 4, 11'001ms) ==
        "3 of 2:4 nodes: have a (8), b (8), c (8); starting in 12 s unless 1 more joins");
  CHECK(text(2, 2, 4, 0ms) ==
        "2 of 2:4 nodes: have a (8), b (8); starting in 0 s unless 2 more join");
}

TEST_CASE("the waiting line stays short however many are here") {
  CHECK(text(20, 30, 30, 1min) ==
        "20 of 30 nodes: have a (8), b (8), c (8), d (8), e (8), f (8), g (8), h (8) and 12 more; "
        "waiting for 10 more, 01:00 left");
  JobTerms terms;
  terms.min_nodes = terms.max_nodes = 30;
  CHECK(awaited_now(roster_of(20), terms, 1min).hosts.size() == kMaxHostsNamed);
}

TEST_CASE("a node that still ends old workers is here, but not counted") {
  Roster roster = roster_of(2);
  roster.set_part(*roster.find("1"), Part::kClearing);
  JobTerms terms;
  terms.min_nodes = terms.max_nodes = 2;
  event::NodesAwaited awaited = awaited_now(roster, terms, 5s);
  CHECK(awaited.have == 1);
  CHECK(awaited.left_ms == 5000);
  CHECK(awaited.text ==
        "1 of 2 nodes: have a (8); 1 node still ends its old workers; waiting for 1 more, 00:05 "
        "left");
}

TEST_CASE("a countdown has hours when it needs them") {
  CHECK(countdown_text(-1s) == "00:00");
  CHECK(countdown_text(59min + 59s) == "59:59");
  CHECK(countdown_text(1h + 2min + 3s) == "1:02:03");
}

}  // namespace muster
