// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/endpoint_discovery.h"

#include <algorithm>

#include "loop/interfaces.h"
#include "loop/unique_fd.h"
#include "rendezvous/discovery_fixture.h"
#include "store/test_peer.h"
#include "store/wire.h"

namespace muster {

namespace {

// Nobody's, by agreement.
constexpr const char* kFarAway = "192.0.2.1";

struct EndpointTest : LoopTest {
  Finder finder{loop};
  RendezvousPlan plan;

  EndpointTest() {
    plan.meeting = Meeting::kDynamic;
    plan.max_nodes = 2;
  }

  void at(const std::string& host, int port) {
    plan.endpoint_host = host;
    plan.endpoint_port = port;
  }

  void make(Finder& whose) {
    whose.discovery =
        std::make_unique<EndpointDiscovery>(loop, plan, whose.listen(), whose.callbacks());
  }

  bool find() {
    make(finder);
    return finder.find();
  }

  // A port that was free a moment ago.
  int free_port() {
    auto probe = StoreServer::listen(loop, "127.0.0.1", 0, {});
    REQUIRE(probe.has_value());
    return (*probe)->port();
  }
};

// Somebody who is no muster listens here.
struct TakenPort {
  UniqueFd socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  int port = 0;

  TakenPort() {
    auto at = SocketAddress::parse("0.0.0.0", 0);
    REQUIRE(bind(socket.get(), at->raw(), at->size()) == 0);
    REQUIRE(::listen(socket.get(), 1) == 0);
    port = SocketAddress::local(socket.get()).port();
  }
};

}  // namespace

TEST_CASE_FIXTURE(EndpointTest, "of several nodes on one machine the first hosts, the rest come") {
  at("127.0.0.1", free_port());
  REQUIRE(find());
  REQUIRE(finder.hosts());
  CHECK(finder.found[0].store->port() == plan.endpoint_port);
  CHECK(finder.found[0].port == plan.endpoint_port);
  CHECK(finder.found[0].host == "127.0.0.1");
  for (int i = 0; i < 3; ++i) {
    Finder other(loop);
    make(other);
    REQUIRE(other.find());
    CHECK_FALSE(other.hosts());
    CHECK(other.found[0].addresses == std::vector<std::string>{"127.0.0.1"});
    CHECK(other.found[0].port == plan.endpoint_port);
    CHECK(other.found[0].host == "127.0.0.1");
    CHECK(other.steps.empty());
  }
}

TEST_CASE_FIXTURE(EndpointTest, "who looks again after the host has gone becomes the host") {
  at("127.0.0.1", free_port());
  Finder first(loop);
  make(first);
  REQUIRE(first.find());
  REQUIRE(find());
  CHECK_FALSE(finder.hosts());
  first.found.clear();
  REQUIRE(finder.find());
  CHECK(finder.hosts());
}

TEST_CASE_FIXTURE(EndpointTest, "an endpoint elsewhere is only gone to") {
  at(kFarAway, 29400);
  REQUIRE(find());
  CHECK_FALSE(finder.hosts());
  CHECK(finder.listened.empty());
  CHECK(finder.found[0].addresses == std::vector<std::string>{kFarAway});
}

TEST_CASE_FIXTURE(EndpointTest,
                  "any address of this machine leads here and is what is listened at") {
  for (const SocketAddress& address : reachable_addresses()) {
    CAPTURE(address.host());
    at(address.host(), free_port());
    REQUIRE(find());
    CHECK(finder.hosts());
    CHECK(finder.listened.back() == address.host());
  }
}

TEST_CASE_FIXTURE(EndpointTest, "localhost is hosted on loopback alone") {
  at("localhost", free_port());
  REQUIRE(find());
  REQUIRE(finder.hosts());
  CHECK(finder.listened == std::vector<std::string>{"127.0.0.1"});
  CHECK(finder.found[0].host == "localhost");
  Finder other(loop);
  make(other);
  REQUIRE(other.find());
  CHECK(std::ranges::count(other.found[0].addresses, "127.0.0.1") == 1);
}

TEST_CASE("where to listen follows from what was written") {
  CHECK(listen_address_for("10.0.0.1") == "10.0.0.1");
  CHECK(listen_address_for("fe80::1%lo") == "fe80::1%lo");
  CHECK(listen_address_for("localhost") == "127.0.0.1");
  CHECK(listen_address_for("node-a") == "::");
}

TEST_CASE_FIXTURE(EndpointTest, "a node that is told to host asks no name server") {
  plan.is_host = true;
  at("no-such-host.invalid", free_port());
  REQUIRE(find());
  CHECK(finder.hosts());
  CHECK(finder.listened == std::vector<std::string>{"::"});
  CHECK(finder.found[0].host == "no-such-host.invalid");
  CHECK(finder.steps.empty());
  CHECK_FALSE(loop.has_requests());
}

TEST_CASE_FIXTURE(EndpointTest, "a node that is told to host behind a foreign address does so") {
  plan.is_host = true;
  at(kFarAway, free_port());
  REQUIRE(find());
  CHECK(finder.hosts());
  CHECK(finder.listened == std::vector<std::string>{kFarAway, "::"});
}

TEST_CASE_FIXTURE(EndpointTest, "a node that is told to host a port in use fails and says so") {
  plan.is_host = true;
  TakenPort taken;
  at("127.0.0.1", taken.port);
  CHECK_FALSE(find());
  REQUIRE(finder.failures.size() == 1);
  CHECK(finder.failures[0].code == EADDRINUSE);
  const std::string where = "127.0.0.1:" + std::to_string(taken.port);
  CHECK(finder.failures[0].message ==
        "this node is to host " + where +
            ", but the port is in use here: is another job or program at it? (store: bind " +
            where + ": Address already in use)");
}

TEST_CASE_FIXTURE(EndpointTest, "a node that is told not to host never listens") {
  plan.is_host = false;
  at("127.0.0.1", free_port());
  REQUIRE(find());
  CHECK_FALSE(finder.hosts());
  CHECK(finder.listened.empty());
}

TEST_CASE_FIXTURE(EndpointTest, "with static ranks node 0 hosts, wherever the endpoint leads") {
  plan.meeting = Meeting::kStatic;
  plan.node_rank = 1;
  at("127.0.0.1", free_port());
  REQUIRE(find());
  CHECK_FALSE(finder.hosts());
  plan.node_rank = 0;
  REQUIRE(find());
  CHECK(finder.hosts());
}

TEST_CASE_FIXTURE(EndpointTest, "c10d goes by the address, whatever the rank") {
  plan.node_rank = 1;
  at("127.0.0.1", free_port());
  REQUIRE(find());
  CHECK(finder.hosts());
}

TEST_CASE_FIXTURE(EndpointTest, "a name that is not known yet is asked for again and said once") {
  at("late-host.invalid", 29400);
  make(finder);
  finder.discovery->find();
  REQUIRE(run_until([&] { return !finder.steps.empty(); }));
  bool later = false;
  auto timer = Timer::start(loop, Milliseconds(400), [&] { later = true; });
  REQUIRE(run_until([&] { return later; }));
  CHECK(finder.steps.size() == 1);
  CHECK(finder.steps[0].starts_with("resolve late-host.invalid: "));
  CHECK(finder.failures.empty());
  CHECK(finder.found.empty());
}

TEST_CASE_FIXTURE(EndpointTest, "a dropped discovery is silent") {
  at("localhost", 29400);
  make(finder);
  finder.discovery->find();
  finder.discovery.reset();
  bool later = false;
  auto timer = Timer::start(loop, Milliseconds(50), [&] { later = true; });
  REQUIRE(run_until([&] { return later && !loop.has_requests(); }));
  CHECK(finder.found.empty());
}

TEST_CASE_FIXTURE(EndpointTest, "an agent that comes before the store has an owner is not lost") {
  at("127.0.0.1", free_port());
  REQUIRE(find());
  REQUIRE(finder.hosts());
  TestPeer agent(loop, plan.endpoint_port);
  agent.send(std::string(kControlPreamble));
  bool later = false;
  auto timer = Timer::start(loop, Milliseconds(50), [&] { later = true; });
  REQUIRE(run_until([&] { return later; }));
  bool handed = false;
  finder.found[0].store->set_on_stranger(
      [&](UniqueFd, const std::string&, const SocketAddress&) { handed = true; });
  CHECK(run_until([&] { return handed; }));
}

TEST_CASE_FIXTURE(EndpointTest, "it may be dropped in its own callbacks") {
  at("127.0.0.1", free_port());
  Discovery::Callbacks callbacks = finder.callbacks();
  callbacks.on_found = [&](Discovery::Found found) {
    finder.discovery.reset();
    finder.found.push_back(std::move(found));
  };
  finder.discovery =
      std::make_unique<EndpointDiscovery>(loop, plan, finder.listen(), std::move(callbacks));
  finder.discovery->find();
  REQUIRE(run_until([&] { return finder.found.size() == 1; }));
  CHECK(finder.hosts());
}

}  // namespace muster
