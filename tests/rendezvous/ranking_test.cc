// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/rendezvous_options.h"
#include "supervisor/rendezvous/ranking.h"

#include <doctest/doctest.h>

#include <string>

#include "supervisor/rendezvous/master_address.h"

namespace muster {

namespace {

struct Nodes {
  Node& add(const std::string& id, int workers = 2, int place = -1, const char* role = "default") {
    NodeFacts facts;
    facts.id = id;
    facts.host = "node-" + id;
    facts.workers = workers;
    facts.role = role;
    Node& node = roster.add(facts);
    node.place = place;
    return node;
  }
  Node& add_ranked(const std::string& id, int rank) {
    NodeFacts facts;
    facts.id = id;
    facts.node_rank = rank;
    facts.workers = 1;
    return roster.add(facts);
  }
  std::string order(int max) {
    std::string text;
    for (Node* node : choose_members(roster, "h", max))
      text += node->facts.id;
    return text;
  }
  Roster roster;
};

}  // namespace

TEST_CASE("without ranks the host is first and the others follow as they came") {
  Nodes nodes;
  for (const char* id : {"c", "b", "h", "a"})
    nodes.add(id);
  CHECK(nodes.order(4) == "hcba");
}

TEST_CASE("with a rank for every node the ranks decide, gaps and all") {
  Nodes nodes;
  nodes.add_ranked("h", 5);
  nodes.add_ranked("b", 0);
  nodes.add_ranked("c", 3);
  CHECK(nodes.order(8) == "bch");
}

TEST_CASE("one node without a rank and the ranks are not used") {
  Nodes nodes;
  nodes.add_ranked("b", 1);
  nodes.add_ranked("c", 0);
  nodes.add("h");
  CHECK(nodes.order(8) == "hbc");
}

TEST_CASE("who stays keeps its place, newcomers take the vacated ones, then the end") {
  Nodes nodes;
  nodes.add("h", 2, 0);
  nodes.add("b", 2, 3);
  nodes.add("c", 2, 2);
  nodes.add("x");
  CHECK(nodes.order(8) == "hxcb");
  nodes.add("y");
  CHECK(nodes.order(8) == "hxcby");
}

TEST_CASE("a place that stays empty is closed up") {
  Nodes nodes;
  nodes.add("h", 2, 0);
  nodes.add("d", 2, 7);
  nodes.add("c", 2, 4);
  CHECK(nodes.order(8) == "hcd");
}

TEST_CASE("beyond the most, those with a place and then the first to come are taken") {
  Nodes nodes;
  nodes.add("x");
  nodes.add("y");
  nodes.add("b", 2, 1);
  nodes.add("h", 2, 0);
  CHECK(nodes.order(3) == "hbx");
  CHECK(nodes.order(1) == "h");
}

TEST_CASE("two claims to one place: the older node has it") {
  Nodes nodes;
  nodes.add("h", 2, 0);
  nodes.add("b", 2, 1);
  nodes.add("c", 2, 1);
  CHECK(nodes.order(8) == "hbc");
}

TEST_CASE("only waiting nodes are chosen") {
  Nodes nodes;
  nodes.add("h");
  nodes.roster.set_part(nodes.add("b"), Part::kClearing);
  nodes.roster.set_part(nodes.add("c"), Part::kHome);
  CHECK(nodes.order(8) == "h");
}

TEST_CASE("ranks are contiguous in node order and role ranks cumulative for each role") {
  Nodes nodes;
  nodes.add("h", 4, 0, "trainer");
  nodes.add("b", 1, 1, "reader");
  nodes.add("c", 2, 2, "trainer");
  nodes.add("d", 3, 3, "reader");
  auto members = choose_members(nodes.roster, "h", 8);
  auto parts = number_ranks(members);
  REQUIRE(parts.size() == 4);
  auto check = [&](size_t i, int first, int role_first, int role_world) {
    CAPTURE(i);
    CHECK(parts[i].node == static_cast<int>(i));
    CHECK(parts[i].node_count == 4);
    CHECK(parts[i].world_size == 10);
    CHECK(parts[i].first_rank == first);
    CHECK(parts[i].role_first_rank == role_first);
    CHECK(parts[i].role_world_size == role_world);
  };
  check(0, 0, 0, 6);
  check(1, 4, 0, 4);
  check(2, 5, 4, 6);
  check(3, 7, 1, 4);
  auto spans = spans_of(members, parts);
  CHECK(spans[3].host == "node-d");
  CHECK(spans[3].first_rank == 7);
  CHECK(spans[3].workers == 3);
}

TEST_CASE("uneven worker counts are told briefly, most common first") {
  Nodes nodes;
  nodes.add("h", 8);
  nodes.add("b", 8);
  CHECK(uneven_text(choose_members(nodes.roster, "h", 99)) == "");
  nodes.add("c", 4);
  nodes.add("d", 8);
  CHECK(uneven_text(choose_members(nodes.roster, "h", 99)) ==
        "nodes have different numbers of workers: 8 on node-h and 2 more, 4 on node-c");
  for (int i = 1; i < 8; ++i)
    nodes.add("n" + std::to_string(i), 10 + i);
  CHECK(uneven_text(choose_members(nodes.roster, "h", 99)).ends_with(", ..."));
}

TEST_CASE("loopback names and addresses are known in every spelling") {
  for (const char* host : {"localhost", "LOCALHOST", "a.localhost", "localhost.localdomain",
                           "localhost6", "ip6-localhost", "127.0.0.1", "127.3.2.1", "::1", "[::1]",
                           "::ffff:127.0.0.1", "0:0:0:0:0:0:0:1"}) {
    CAPTURE(host);
    CHECK(is_loopback_host(host));
  }
  for (const char* host :
       {"", "node-a", "localhosts", "127.example.org", "10.0.0.1", "::2", "fe80::1%eth0"}) {
    CAPTURE(host);
    CHECK_FALSE(is_loopback_host(host));
  }
}

TEST_CASE("the master's address: local address, endpoint, what peers reached, what we know") {
  Nodes nodes;
  nodes.add("h");
  nodes.add("b").our_address = "127.0.0.1";
  nodes.add("c").our_address = "fe80::1%eth0";
  CoordinatorSettings settings;
  settings.endpoint_host = "head.example";
  settings.fallback_address = "192.0.2.1";
  auto address = [&](const std::string& local = "") {
    return host_address(settings, local, choose_members(nodes.roster, "h", 8));
  };
  CHECK(address("10.9.9.9") == "10.9.9.9");
  CHECK(address() == "head.example");
  settings.endpoint_host = "localhost";
  CHECK(address() == "fe80::1%eth0");
  nodes.add("d").our_address = "10.0.0.1";
  CHECK(address() == "10.0.0.1");
  Nodes alone;
  alone.add("h");
  CHECK(host_address(settings, "", choose_members(alone.roster, "h", 8)) == "192.0.2.1");
  settings.fallback_address = "";
  CHECK(host_address(settings, "", choose_members(alone.roster, "h", 8)) == "localhost");
}

}  // namespace muster
