// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>

#include "loop/http_client.h"
#include "loop/loop_test.h"
#include "loop/timer.h"
#include "rendezvous/etcd_server.h"
#include "skip.h"
#include "supervisor/rendezvous/etcd_discovery.h"
#include "supervisor/rendezvous/etcd_v2.h"
#include "supervisor/rendezvous/etcd_v3.h"

namespace muster {

namespace {

// One node's search for the coordinator, and what it was told.
struct Node {
  std::vector<Discovery::Found> found;
  std::vector<std::string> steps;
  std::vector<std::string> deposed;
  std::vector<Error> failed;
  Clock::time_point found_at;
  Clock::time_point deposed_at;
  int refused_port = 0;  // nobody listens there any more: who is sent there looks again at once
  std::unique_ptr<EtcdDiscovery> discovery;

  bool hosts() const { return !found.empty() && found.back().store != nullptr; }
  bool said(const std::string& part) const {
    return std::any_of(steps.begin(), steps.end(), [&](const std::string& step) {
      return step.find(part) != std::string::npos;
    });
  }
};

struct EtcdTest : LoopTest {
  EtcdServer server;
  Meeting api = Meeting::kEtcdV2;
  bool runs = EtcdServer::installed();

  EtcdTest() {
    if (!runs) say_skipped("etcd is not installed");
  }

  EtcdDiscovery::Settings settings(const std::string& agent) {
    EtcdDiscovery::Settings settings;
    settings.api = api;
    settings.endpoint_host = "127.0.0.1";
    settings.endpoint_port = server.port();
    settings.run_id = "a run/1";
    settings.agent_id = agent;
    settings.host_name = "host-of-" + agent;
    settings.listen = [this](const std::string& address, int port) {
      return StoreServer::listen(loop, address, port, {});
    };
    return settings;
  }

  std::unique_ptr<Node> node(EtcdDiscovery::Settings settings) {
    auto node = std::make_unique<Node>();
    Node* raw = node.get();
    auto discovery =
        EtcdDiscovery::create(loop, std::move(settings),
                              {[raw](Discovery::Found found) {
                                 raw->found_at = Clock::now();
                                 raw->found.push_back(std::move(found));
                                 if (raw->found.back().port == raw->refused_port)
                                   raw->discovery->find();
                               },
                               [raw](const std::string& step) { raw->steps.push_back(step); },
                               [raw](const Error& error) { raw->failed.push_back(error); },
                               [raw](const std::string& why) {
                                 raw->deposed_at = Clock::now();
                                 raw->deposed.push_back(why);
                               }});
    REQUIRE(discovery.has_value());
    node->discovery = std::move(*discovery);
    return node;
  }
  std::unique_ptr<Node> node(const std::string& agent) { return node(settings(agent)); }

  // Looks until it found something.
  std::unique_ptr<Node> searching(const std::string& agent) {
    auto result = node(agent);
    result->discovery->find();
    REQUIRE(run_until([&] { return !result->found.empty(); }));
    return result;
  }

  // The office itself, past the discovery.
  std::unique_ptr<EtcdOffice> office() {
    HttpClient::Server at;
    at.host = "127.0.0.1";
    at.port = server.port();
    auto client = std::make_unique<HttpClient>(loop, at);
    const std::string key = EtcdDiscovery::key_for(settings(""));
    return api == Meeting::kEtcdV2 ? etcd_v2_office(std::move(client), key, Milliseconds(5000))
                                   : etcd_v3_office(std::move(client), key, Milliseconds(5000));
  }

  template <typename T>
  T wait(std::function<void(std::function<void(Result<T>)>)> ask) {
    std::optional<T> got;
    ask([&](Result<T> result) {
      const std::string trouble = result ? "" : result.error().message;
      INFO(trouble);
      REQUIRE(result.has_value());
      got = std::move(*result);
    });
    REQUIRE(run_until([&] { return got.has_value(); }));
    return *got;
  }
  OfficeView view(EtcdOffice& office) {
    return wait<OfficeView>([&](auto done) { office.look(done); });
  }
  bool take(EtcdOffice& office, const std::string& value) {
    return wait<bool>([&](auto done) { office.take(value, Milliseconds(5000), done); });
  }
  bool renew(EtcdOffice& office) {
    return wait<bool>([&](auto done) { office.renew(Milliseconds(5000), done); });
  }
  bool give_up(EtcdOffice& office, const std::string& value) {
    return wait<bool>([&](auto done) { office.give_up(value, Milliseconds(5000), done); });
  }
};

// Runs the case for each generation of the API.
#define FOR_BOTH_APIS()     \
  if (!runs) return;        \
  SUBCASE("v2") {           \
    api = Meeting::kEtcdV2; \
  }                         \
  SUBCASE("v3") {           \
    api = Meeting::kEtcdV3; \
  }

}  // namespace

TEST_CASE_FIXTURE(EtcdTest, "an office is taken once, renewed and given up by its holder only") {
  FOR_BOTH_APIS();
  server.start(loop);
  auto ours = office();
  auto theirs = office();
  CHECK(view(*ours).value == "");
  const Clock::time_point before = Clock::now();
  CHECK(take(*ours, "{\"a\": \"ü+&=%\"}"));
  CHECK(ours->valid_until() >= before + Milliseconds(5000));
  CHECK(ours->valid_until() <= Clock::now() + Milliseconds(5000));
  CHECK_FALSE(take(*theirs, "b"));
  CHECK(view(*theirs).value == "{\"a\": \"ü+&=%\"}");
  CHECK_FALSE(renew(*theirs));
  const Clock::time_point first = ours->valid_until();
  CHECK(renew(*ours));
  CHECK(ours->valid_until() > first);
  CHECK_FALSE(give_up(*theirs, "b"));
  CHECK(give_up(*ours, "{\"a\": \"ü+&=%\"}"));
  CHECK_FALSE(renew(*ours));
  CHECK(view(*ours).value == "");
  CHECK(take(*theirs, "b"));
}

TEST_CASE_FIXTURE(EtcdTest, "a watch tells of the first change after the view, not of renewals") {
  FOR_BOTH_APIS();
  server.start(loop);
  auto ours = office();
  auto watcher = office();
  int changes = 0;
  auto on_change = [&](Result<void> changed) { changes += changed ? 1 : 100; };
  const OfficeView vacant = view(*watcher);
  watcher->watch(vacant, on_change);
  CHECK(take(*ours, "a"));
  REQUIRE(run_until([&] { return changes == 1; }));
  watcher->watch(view(*watcher), on_change);
  CHECK(renew(*ours));
  view(*watcher);
  CHECK(changes == 1);
  CHECK(give_up(*ours, "a"));
  REQUIRE(run_until([&] { return changes == 2; }));
  // What happened between the view and the watch is not missed.
  watcher->watch(vacant, on_change);
  REQUIRE(run_until([&] { return changes == 3; }));
}

TEST_CASE_FIXTURE(EtcdTest, "who finds the office vacant is the host, the others its clients") {
  FOR_BOTH_APIS();
  server.start(loop);
  auto host = searching("a");
  REQUIRE(host->hosts());
  CHECK(host->found[0].port == host->found[0].store->port());
  auto client = searching("b");
  CHECK_FALSE(client->hosts());
  CHECK(client->found[0].port == host->found[0].port);
  CHECK(client->found[0].addresses == host->found[0].addresses);
  CHECK(client->found[0].host == client->found[0].addresses.front());
}

TEST_CASE_FIXTURE(EtcdTest, "--local-addr is what is published") {
  FOR_BOTH_APIS();
  server.start(loop);
  auto with_address = settings("a");
  with_address.local_addr = "127.0.0.5";
  auto host = node(with_address);
  host->discovery->find();
  REQUIRE(run_until([&] { return host->hosts(); }));
  CHECK(searching("b")->found[0].addresses == std::vector<std::string>{"127.0.0.5"});
}

TEST_CASE_FIXTURE(EtcdTest, "of many candidates at the same moment one wins") {
  FOR_BOTH_APIS();
  server.start(loop);
  std::vector<std::unique_ptr<Node>> nodes;
  for (int i = 0; i < 8; ++i)
    nodes.push_back(node("agent-" + std::to_string(i)));
  for (auto& one : nodes)
    one->discovery->find();
  REQUIRE(run_until([&] {
    return std::all_of(nodes.begin(), nodes.end(), [](auto& one) { return !one->found.empty(); });
  }));
  int hosts = 0;
  for (auto& one : nodes) {
    hosts += one->hosts();
    CHECK(one->found[0].port == nodes[0]->found[0].port);
  }
  CHECK(hosts == 1);
}

TEST_CASE_FIXTURE(EtcdTest, "jobs of different run ids do not meet") {
  FOR_BOTH_APIS();
  server.start(loop);
  auto first = searching("a");
  auto other_run = settings("b");
  other_run.run_id = "a run/2";
  auto second = node(other_run);
  second->discovery->find();
  CHECK(run_until([&] { return second->hosts(); }));
  CHECK(first->hosts());
}

TEST_CASE_FIXTURE(EtcdTest, "a holder stays in office as long as it lives") {
  FOR_BOTH_APIS();
  server.start(loop);
  auto host = searching("a");
  bool later = false;
  auto two_leases =
      Timer::start(loop, 2 * EtcdDiscovery::lease_for(Milliseconds(3000)), [&] { later = true; });
  REQUIRE(run_until([&] { return later; }));
  CHECK(host->deposed.empty());
  CHECK(host->steps.empty());
  CHECK(searching("b")->found[0].port == host->found[0].port);
}

TEST_CASE_FIXTURE(EtcdTest, "a dead holder is replaced when its lease has ended") {
  FOR_BOTH_APIS();
  server.start(loop);
  auto host = searching("a");
  auto client = searching("b");
  const int dead_port = host->found[0].port;
  const Clock::time_point dead_at = Clock::now();
  host.reset();
  client->refused_port = dead_port;
  client->discovery->find();
  REQUIRE(run_until([&] { return client->hosts(); }));
  CHECK(client->found.size() >= 3);  // a lost holder is tried again, but without haste
  CHECK(client->found.size() < 6);
  CHECK(client->said("the coordinator on host-of-a ("));
  CHECK(client->said(") was lost; waiting for its lease in etcd to end"));
  CHECK(Clock::now() - dead_at < Milliseconds(12'000));
}

TEST_CASE_FIXTURE(EtcdTest, "a holder that resigns is replaced at once") {
  FOR_BOTH_APIS();
  server.start(loop);
  auto host = searching("a");
  auto client = searching("b");
  client->discovery->find();
  REQUIRE(run_until([&] { return client->said("was lost"); }));
  const Clock::time_point before = Clock::now();
  bool resigned = false;
  REQUIRE(host->discovery->resign([&] { resigned = true; }));
  CHECK_FALSE(resigned);
  REQUIRE(run_until([&] { return client->hosts(); }));
  CHECK(resigned);
  CHECK(Clock::now() - before < Milliseconds(2'500));
  CHECK_FALSE(host->discovery->resign([] {}));
}

TEST_CASE_FIXTURE(EtcdTest, "a frozen etcd deposes the holder before its lease can end") {
  FOR_BOTH_APIS();
  server.start(loop);
  const Milliseconds lease = EtcdDiscovery::lease_for(Milliseconds(3000));
  auto host = searching("a");
  server.freeze();
  const Clock::time_point frozen_at = Clock::now();
  REQUIRE(run_until([&] { return !host->deposed.empty(); }));
  CHECK(host->deposed_at - frozen_at < lease);
  CHECK(host->said(": no answer; without it this node cannot stay the coordinator for longer"));
  CHECK(host->deposed[0].find("could not be renewed for 4.5 s: etcd at 127.0.0.1:") !=
        std::string::npos);
  auto other = node("b");
  other->discovery->find();
  host->discovery->find();
  server.thaw();
  REQUIRE(run_until([&] { return host->found.size() == 2 && other->found.size() == 1; }));
  CHECK(host->hosts() != other->hosts());
  CHECK(std::min(host->found_at, other->found_at) > host->deposed_at);
}

TEST_CASE_FIXTURE(EtcdTest, "an etcd that dies and comes back finds a new holder") {
  FOR_BOTH_APIS();
  server.start(loop);
  auto host = searching("a");
  auto other = searching("b");
  server.kill();
  host->refused_port = other->refused_port = host->found[0].port;
  other->discovery->find();
  REQUIRE(run_until([&] { return !host->deposed.empty(); }));
  CHECK(host->said(": connection refused; without it this node cannot stay"));
  CHECK(other->said("etcd at 127.0.0.1:" + std::to_string(server.port()) + ": connection refused"));
  host->discovery->find();
  server.start(loop);
  REQUIRE(run_until([&] {
    return host->found.size() >= 2 && other->found.back().port == host->found.back().port;
  }));
  CHECK(host->hosts() != other->hosts());
}

TEST_CASE_FIXTURE(EtcdTest, "a short silence of etcd costs nothing") {
  FOR_BOTH_APIS();
  server.start(loop);
  auto host = searching("a");
  server.freeze();
  REQUIRE(run_until([&] { return host->said("no answer"); }));
  server.thaw();
  REQUIRE(run_until([&] { return host->said("answers again"); }));
  CHECK(host->deposed.empty());
}

TEST_CASE_FIXTURE(EtcdTest, "who comes before etcd waits for it and says so") {
  FOR_BOTH_APIS();
  server.start(loop);
  server.kill();
  auto early = node("a");
  early->discovery->find();
  REQUIRE(run_until([&] { return early->said(": connection refused"); }));
  server.start(loop);
  REQUIRE(run_until([&] { return early->hosts(); }));
  CHECK(early->steps.size() == 1);
}

TEST_CASE_FIXTURE(EtcdTest, "a key that somebody removed deposes the holder") {
  FOR_BOTH_APIS();
  server.start(loop);
  auto host = searching("a");
  auto direct = office();
  CHECK(give_up(*direct, view(*direct).value));
  REQUIRE(run_until([&] { return !host->deposed.empty(); }));
  CHECK(host->deposed[0].find("is not ours any more") != std::string::npos);
  host->discovery->find();
  CHECK(run_until([&] { return host->found.size() == 2; }));
  CHECK(host->hosts());
}

TEST_CASE_FIXTURE(EtcdTest, "what a node left behind itself does not keep it waiting") {
  FOR_BOTH_APIS();
  server.start(loop);
  const Clock::time_point before = Clock::now();
  searching("a").reset();
  CHECK(searching("a")->hosts());
  CHECK(Clock::now() - before < Milliseconds(4'000));
}

TEST_CASE_FIXTURE(EtcdTest, "a key of somebody else's is left alone until it goes") {
  FOR_BOTH_APIS();
  server.start(loop);
  auto direct = office();
  CHECK(take(*direct, "something else"));
  auto waiting = node("a");
  waiting->discovery->find();
  REQUIRE(run_until(
      [&] { return waiting->said("holds something else than a coordinator of run 'a run/1'"); }));
  CHECK(view(*direct).value == "something else");
  CHECK(give_up(*direct, "something else"));
  CHECK(run_until([&] { return waiting->hosts(); }));
}

TEST_CASE_FIXTURE(EtcdTest, "an etcd without its v2 API is no use, and the way out is said") {
  if (!runs) return;
  server.start(loop, {"--enable-v2=false"});
  auto only = node("a");
  only->discovery->find();
  REQUIRE(run_until([&] { return !only->failed.empty(); }));
  CHECK(only->failed[0].message.find("start it with --enable-v2, or use --rdzv-backend etcd-v3") !=
        std::string::npos);
}

TEST_CASE_FIXTURE(EtcdTest, "https with certificates on both sides") {
  FOR_BOTH_APIS();
  server.make_authority();
  server.make_certificate("server", "IP:127.0.0.1");
  server.make_certificate("agent", "DNS:agent");
  server.start_tls(loop, "server");
  auto secure = settings("a");
  secure.etcd = {{"protocol", "https"}};
  const auto path = [&](const std::string& file) { return server.folder().path(file); };

  auto untrusting = node(secure);  // the authority is none of the system's
  untrusting->discovery->find();
  REQUIRE(run_until([&] { return untrusting->said(": TLS: "); }));
  CHECK(untrusting->said("certificate"));

  secure.etcd[api == Meeting::kEtcdV2 ? "ca_cert" : "cacert"] = path("ca.pem");
  auto nobody = node(secure);
  nobody->discovery->find();
  REQUIRE(run_until([&] { return nobody->said(": TLS: "); }));
  CHECK(nobody->found.empty());

  secure.etcd[api == Meeting::kEtcdV2 ? "ssl_cert" : "cert"] = path("agent.pem");
  secure.etcd[api == Meeting::kEtcdV2 ? "ssl_cert_key" : "key"] = path("agent-key.pem");
  auto host = node(secure);
  host->discovery->find();
  REQUIRE(run_until([&] { return host->hosts(); }));
  nobody.reset();
  untrusting.reset();

  // A certificate is good for the names in it alone.
  secure.endpoint_host = "localhost";
  auto misled = node(secure);
  misled->discovery->find();
  REQUIRE(run_until([&] { return misled->said(": TLS: hostname mismatch"); }));

  secure.etcd["cert"] = path("nowhere.pem");
  auto unreadable = EtcdDiscovery::create(loop, secure, {});
  REQUIRE_FALSE(unreadable.has_value());
  CHECK(unreadable.error().message.find("nowhere.pem: No such file") != std::string::npos);
  secure.etcd["protocol"] = "ftp";
  CHECK_FALSE(EtcdDiscovery::create(loop, secure, {}).has_value());
}

TEST_CASE_FIXTURE(EtcdTest, "a watch in TLS learns of the change too") {
  FOR_BOTH_APIS();
  server.make_authority();
  server.make_certificate("server", "IP:127.0.0.1");
  server.start_tls(loop, "server");
  auto secure = [&](const std::string& agent) {
    auto with_tls = settings(agent);
    with_tls.etcd = {{"protocol", "https"},
                     {"cacert", server.folder().path("ca.pem")},
                     {"cert", server.folder().path("server.pem")},
                     {"key", server.folder().path("server-key.pem")}};
    return with_tls;
  };
  auto host = node(secure("a"));
  host->discovery->find();
  REQUIRE(run_until([&] { return host->hosts(); }));
  auto client = node(secure("b"));
  client->discovery->find();
  REQUIRE(run_until([&] { return !client->found.empty(); }));
  client->discovery->find();
  REQUIRE(run_until([&] { return client->said("was lost"); }));
  bool resigned = false;
  REQUIRE(host->discovery->resign([&] { resigned = true; }));
  CHECK(run_until([&] { return client->hosts() && resigned; }));
}

TEST_CASE("the lease outlasts the silence after which a node is taken for lost") {
  CHECK(EtcdDiscovery::lease_for(Milliseconds(3000)) == Milliseconds(5000));
  CHECK(EtcdDiscovery::lease_for(Milliseconds(100)) == Milliseconds(5000));
  CHECK(EtcdDiscovery::lease_for(Milliseconds(14'500)) == Milliseconds(17'000));
  CHECK(EtcdDiscovery::margin_of(Milliseconds(5000)) == Milliseconds(500));
}

TEST_CASE("the key lies in a folder of muster's own below the prefix") {
  EtcdDiscovery::Settings settings;
  settings.run_id = "a/b c";
  CHECK(EtcdDiscovery::key_for(settings) == "/torchelastic/p2p/muster/coordinator/a%2Fb%20c");
  settings.api = Meeting::kEtcdV3;
  CHECK(EtcdDiscovery::key_for(settings) ==
        "/torch/elastic/rendezvous/muster/coordinator/a%2Fb%20c");
  settings.etcd["etcd_prefix"] = "mine/";
  CHECK(EtcdDiscovery::key_for(settings) == "/mine/muster/coordinator/a%2Fb%20c");
}

}  // namespace muster
