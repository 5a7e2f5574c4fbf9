// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <deque>

#include "loop/http_client.h"
#include "loop/loop_test.h"
#include "loop/tcp_connector.h"
#include "loop/tcp_listener.h"
#include "loop/tcp_stream.h"
#include "loop/timer.h"
#include "rendezvous/etcd_server.h"
#include "skip.h"
#include "supervisor/rendezvous/etcd_discovery.h"
#include "supervisor/rendezvous/etcd_v3.h"

namespace muster {

namespace {

// Stands between a node and etcd, and loses the answers to campaigns.
class Relay {
 public:
  Relay(Loop& loop, int to_port) : loop_(loop), to_port_(to_port) {
    auto listening = TcpListener::listen(
        loop, "127.0.0.1", 0,
        {[this](UniqueFd socket, const SocketAddress&) { accept(std::move(socket)); }, {}});
    REQUIRE(listening.has_value());
    listener_ = std::move(*listening);
  }

  int port() const { return listener_->port(); }

  int answers_to_lose = 0;

 private:
  struct Pair {
    std::vector<char> buffer = std::vector<char>(65536);
    Owned<TcpStream> client;
    Owned<TcpStream> server;
    Owned<TcpConnector> connector;
    std::string waiting;
    bool loses = false;
  };

  Owned<TcpStream> adopt(UniqueFd socket, Pair& pair,
                         std::function<void(std::string_view)> on_data) {
    auto stream = TcpStream::adopt(loop_, std::move(socket), pair.buffer,
                                   {std::move(on_data),
                                    [&pair](int) {
                                      pair.client.reset();
                                      pair.server.reset();
                                    },
                                    [] {}});
    REQUIRE(stream.has_value());
    return std::move(*stream);
  }

  void accept(UniqueFd socket) {
    Pair& pair = pairs_.emplace_back();
    pair.client = adopt(std::move(socket), pair, [this, &pair](std::string_view bytes) {
      const bool campaign = bytes.find("prevExist=false") != std::string_view::npos ||
                            bytes.find("create_revision") != std::string_view::npos;
      if (campaign && answers_to_lose > 0) {
        --answers_to_lose;
        pair.loses = true;
      }
      if (pair.server) pair.server->write(bytes);
      if (!pair.server) pair.waiting += bytes;
    });
    auto to = SocketAddress::parse("127.0.0.1", to_port_);
    pair.connector =
        TcpConnector::connect(loop_, *to, Milliseconds(5000), [this, &pair](Result<UniqueFd> end) {
          REQUIRE(end.has_value());
          pair.server = adopt(std::move(*end), pair, [&pair](std::string_view bytes) {
            if (!pair.loses) return pair.client->write(bytes);
            pair.client.reset();
            pair.server.reset();
          });
          pair.server->write(pair.waiting);
        });
  }

  Loop& loop_;
  int to_port_;
  std::deque<Pair> pairs_;
  Owned<TcpListener> listener_;
};

// Answers every request with the same bytes.
struct FakeEtcd {
  std::vector<char> buffer = std::vector<char>(65536);
  std::vector<Owned<TcpStream>> streams;
  Owned<TcpListener> listener;
  int requests = 0;

  FakeEtcd(Loop& loop, std::string answer) {
    auto listening = TcpListener::listen(
        loop, "127.0.0.1", 0,
        {[this, &loop, answer](UniqueFd socket, const SocketAddress&) {
           const size_t index = streams.size();
           auto stream = TcpStream::adopt(loop, std::move(socket), buffer,
                                          {[this, index, answer](std::string_view) {
                                             ++requests;
                                             streams[index]->write(answer);
                                           },
                                           [this, index](int) { streams[index].reset(); }, [] {}});
           REQUIRE(stream.has_value());
           streams.push_back(std::move(*stream));
         },
         {}});
    REQUIRE(listening.has_value());
    listener = std::move(*listening);
  }
};

struct Told {
  std::vector<Discovery::Found> found;
  std::vector<std::string> steps;
  std::vector<Error> failed;
};

struct FaultsTest : LoopTest {
  Told told;
  Meeting api = Meeting::kEtcdV2;

  std::unique_ptr<EtcdDiscovery> search(int port) {
    EtcdDiscovery::Settings settings;
    settings.api = api;
    settings.endpoint_host = "127.0.0.1";
    settings.endpoint_port = port;
    settings.run_id = "run";
    settings.agent_id = "agent";
    settings.listen = [this](const std::string& address, int at) {
      return StoreServer::listen(loop, address, at, {});
    };
    auto discovery = EtcdDiscovery::create(
        loop, settings,
        {[this](Discovery::Found found) { told.found.push_back(std::move(found)); },
         [this](const std::string& step) { told.steps.push_back(step); },
         [this](const Error& error) { told.failed.push_back(error); }, [](const std::string&) {}});
    REQUIRE(discovery.has_value());
    (*discovery)->find();
    return std::move(*discovery);
  }

  // The first thing that is said when a server gives this answer to everything.
  std::string said_about(const std::string& answer) {
    FakeEtcd fake(loop, answer);
    told = {};
    auto discovery = search(fake.listener->port());
    REQUIRE(run_until([&] { return !told.steps.empty() || !told.failed.empty(); }));
    CHECK(told.found.empty());
    const std::string said = told.failed.empty() ? told.steps[0] : told.failed[0].message;
    return said.substr(said.find(": ") + 2);
  }
};

std::string ok(const std::string& body) {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace

TEST_CASE_FIXTURE(FaultsTest, "a campaign whose answer is lost is won all the same") {
  if (!EtcdServer::installed()) return say_skipped("etcd is not installed");
  EtcdServer server;
  SUBCASE("v2") {
    api = Meeting::kEtcdV2;
  }
  SUBCASE("v3") {
    api = Meeting::kEtcdV3;
  }
  server.start(loop);
  for (int lost : {1, 2, 3}) {
    INFO("answers lost: ", lost);
    told = {};
    Relay relay(loop, server.port());
    relay.answers_to_lose = lost;
    auto discovery = search(relay.port());
    REQUIRE(run_until([&] { return !told.found.empty(); }));
    CHECK(relay.answers_to_lose == 0);
    CHECK(told.found[0].store != nullptr);
    // A lost answer alone is nothing to speak of: the request was sent again.
    CHECK(told.steps.empty() == (lost == 1));
    bool resigned = false;
    REQUIRE(discovery->resign([&] { resigned = true; }));
    REQUIRE(run_until([&] { return resigned; }));
  }
}

TEST_CASE_FIXTURE(FaultsTest, "whatever answers instead of etcd is named and not believed") {
  for (Meeting generation : {Meeting::kEtcdV2, Meeting::kEtcdV3}) {
    api = generation;
    CHECK(said_about("SSH-2.0-OpenSSH_9.2\r\n").starts_with("the answer is not HTTP ("));
    CHECK(said_about(ok("<html>")) == "the answer is not etcd's");
    CHECK(said_about(ok("{}")) == "the answer is not etcd's");
    CHECK(said_about("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n") == "status 502");
    CHECK(said_about("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n") == "access denied");
    CHECK(said_about("HTTP/1.1 200 OK\r\nA: " + std::string(100'000, 'x')) ==
          "the answer's head is too large");
    CHECK(said_about("HTTP/1.1 200 OK\r\n\r\n" + std::string(5'000'000, 'x')) ==
          "the answer's body is too large");
  }
}

TEST_CASE_FIXTURE(FaultsTest, "a watch that never says anything whole is given up") {
  FakeEtcd fake(loop, "HTTP/1.1 200 OK\r\n\r\n" + std::string(300'000, 'x'));
  HttpClient::Server at;
  at.host = "127.0.0.1";
  at.port = fake.listener->port();
  auto office = etcd_v3_office(std::make_unique<HttpClient>(loop, at), "/key", Milliseconds(5000));
  std::vector<Result<void>> ends;
  office->watch({}, [&](Result<void> end) { ends.push_back(end); });
  REQUIRE(run_until([&] { return !ends.empty(); }));
  REQUIRE_FALSE(ends[0].has_value());
  CHECK(ends[0].error().message == "the answer is not etcd's");
  CHECK(run_until([&] { return fake.streams[0] == nullptr; }));
  CHECK(ends.size() == 1);
}

TEST_CASE_FIXTURE(FaultsTest, "a watch that ends again and again costs a few requests a second") {
  FakeEtcd fake(loop,
                "HTTP/1.1 200 OK\r\nX-Etcd-Index: 1\r\nContent-Length: 25\r\n\r\n"
                "{\"node\":{\"value\":\"other\"}}");
  auto discovery = search(fake.listener->port());
  REQUIRE(run_until([&] { return !told.steps.empty(); }));
  bool later = false;
  auto three_seconds = Timer::start(loop, Milliseconds(3'000), [&] { later = true; });
  REQUIRE(run_until([&] { return later; }));
  CHECK(fake.requests > 2);
  CHECK(fake.requests < 20);
}

}  // namespace muster
