// SPDX-License-Identifier: Apache-2.0
#include "loop/own_machine.h"
#include "rendezvous/discovery_fixture.h"
#include "store/test_peer.h"

namespace muster {

namespace {

// A node at an endpoint that is a name, on a machine whose hosts file the test writes.
struct NamedNode : LoopTest {
  Finder finder{loop};
  RendezvousPlan plan;

  explicit NamedNode(const std::string& host) {
    plan.meeting = Meeting::kDynamic;
    plan.max_nodes = 2;
    plan.endpoint_host = host;
    plan.endpoint_port = 29400;
    finder.discovery =
        std::make_unique<EndpointDiscovery>(loop, plan, finder.listen(), finder.callbacks());
  }

  bool find() {
    const size_t before = finder.found.size();
    finder.discovery->find();
    return run_until([&] { return finder.found.size() > before || !finder.failures.empty(); }) &&
           finder.failures.empty();
  }

  std::vector<std::string> addresses() const { return finder.found.back().addresses; }
};

using Hosts = std::vector<std::string>;

}  // namespace

TEST_CASE("a name that appears late is found, and where it leads is asked anew each time") {
  OwnMachine::run([](OwnMachine& machine) {
    NamedNode node("node-b");
    node.finder.discovery->find();
    NEED(node.run_until([&] { return !node.finder.steps.empty(); }));
    NEED(node.finder.steps[0] == "resolve node-b: no answer from the name server");
    machine.set_hosts("10.0.0.9 node-b\n");
    NEED(node.run_until([&] { return !node.finder.found.empty(); }));
    NEED(node.addresses() == Hosts{"10.0.0.9"});
    NEED(node.finder.found[0].host == "node-b");
    machine.set_hosts("10.0.0.10 node-b\n");
    NEED(node.find());
    NEED(node.addresses() == Hosts{"10.0.0.10"});
    NEED(node.finder.listened.empty());
    // A new machine's turn: the name now leads here.
    machine.set_hosts("127.0.1.1 node-b\n");
    NEED(node.find());
    NEED(node.finder.hosts());
    return true;
  });
}

TEST_CASE("a name that leads to loopback is hosted everywhere: others know it otherwise") {
  OwnMachine::run([](OwnMachine& machine) {
    NEED(machine.add_address("10.77.0.1"));
    machine.set_hosts("127.0.1.1 node-a\n");
    NamedNode node("node-a");
    NEED(node.find());
    NEED(node.finder.hosts());
    NEED(node.finder.listened == Hosts{"::"});
    TestPeer peer(node.loop, 29400, "10.77.0.1");
    return true;
  });
}

TEST_CASE("of a name's many addresses one of ours is enough") {
  OwnMachine::run([](OwnMachine& machine) {
    NEED(machine.add_address("10.77.0.1"));
    machine.set_hosts("10.0.0.9 node-a\n10.77.0.1 node-a\n2001:db8::9 node-a\n");
    NamedNode node("node-a");
    NEED(node.find());
    NEED(node.finder.hosts());
    NamedNode other("node-a");
    other.finder.discovery = std::make_unique<EndpointDiscovery>(
        node.loop, node.plan, node.finder.listen(), node.finder.callbacks());
    other.finder.discovery->find();
    NEED(node.run_until([&] { return node.finder.found.size() == 2; }));
    NEED(!node.finder.hosts());
    NEED((node.addresses() == Hosts{"10.77.0.1", "10.0.0.9"}));
    return true;
  });
}

TEST_CASE("a machine without IPv6 hosts and finds without a word") {
  OwnMachine::run([](OwnMachine& machine) {
    NEED(machine.disable_ipv6());
    machine.set_hosts("::1 node-a localhost\n127.0.0.1 node-a localhost\n");
    for (const char* name : {"node-a", "localhost"}) {
      NamedNode node(name);
      NEED(node.find());
      NEED(node.finder.hosts());
      NEED(node.finder.steps.empty());
      TestPeer peer(node.loop, 29400, "127.0.0.1");
    }
    return true;
  });
}

TEST_CASE("localhost is hosted where it leads, if that is IPv6 alone") {
  OwnMachine::run([](OwnMachine& machine) {
    machine.set_hosts("::1 localhost\n");
    NamedNode node("localhost");
    NEED(node.find());
    NEED(node.finder.hosts());
    NEED(node.finder.listened == Hosts{"::1"});
    return true;
  });
}

}  // namespace muster
