// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "loop/loop.h"
#include "loop/tcp_connector.h"
#include "loop/tcp_listener.h"
#include "loop/tcp_stream.h"

namespace muster {

// A network between agents and a coordinator that a test can break: listens on a port of its own
// and forwards to another.
class Relay {
 public:
  Relay(Loop& loop, int target_port) : loop_(loop), target_port_(target_port) { listen(0); }

  int port() const { return port_; }
  size_t accepted() const { return accepted_; }

  // Closes every connection; new ones are taken.
  void cut() { pipes_.clear(); }

  // The same for the agents' sides alone: the coordinator hears of nothing.
  void cut_agents() {
    for (auto& [id, pipe] : pipes_)
      pipe->client.reset();
  }

  // Nothing passes any more, nothing is closed; new connections stay without an answer.
  void freeze() { frozen_ = true; }
  void thaw() {
    frozen_ = false;
    for (auto& [id, pipe] : pipes_)
      pipe->flush();
  }

  // Nobody listens here any more.
  void refuse() {
    listener_.reset();
    cut();
  }
  void accept_again() { listen(port_); }

 private:
  struct Pipe {
    Owned<TcpConnector> connector;
    Owned<TcpStream> client;
    Owned<TcpStream> server;
    std::string to_server, to_client;
    std::unique_ptr<char[]> buffer = std::make_unique<char[]>(65536);

    void flush() {
      if (server) server->write(std::exchange(to_server, ""));
      if (client) client->write(std::exchange(to_client, ""));
    }
  };

  void listen(int port) {
    auto listener = TcpListener::listen(
        loop_, "127.0.0.1", port,
        {[this](UniqueFd socket, const SocketAddress&) { accepted(std::move(socket)); },
         [](const std::string& trouble) { FAIL(trouble); }});
    REQUIRE(listener);
    listener_ = std::move(*listener);
    port_ = listener_->port();
  }

  void accepted(UniqueFd socket) {
    ++accepted_;
    const int id = next_id_++;
    Pipe& pipe = *(pipes_[id] = std::make_unique<Pipe>());
    auto client = TcpStream::adopt(loop_, std::move(socket), {pipe.buffer.get(), 65536},
                                   {[this, &pipe](std::string_view bytes) {
                                      pipe.to_server += bytes;
                                      if (!frozen_) pipe.flush();
                                    },
                                    [this, id](int) { ended(id); }, [] {}});
    REQUIRE(client);
    pipe.client = std::move(*client);
    pipe.connector = TcpConnector::connect(
        loop_, *SocketAddress::parse("127.0.0.1", target_port_), Milliseconds(5'000),
        [this, id](Result<UniqueFd> there) { connected(id, std::move(there)); });
  }

  void connected(int id, Result<UniqueFd> there) {
    Pipe& pipe = *pipes_.at(id);
    if (!there) return ended(id);
    auto server = TcpStream::adopt(loop_, std::move(*there), {pipe.buffer.get(), 65536},
                                   {[this, &pipe](std::string_view bytes) {
                                      pipe.to_client += bytes;
                                      if (!frozen_) pipe.flush();
                                    },
                                    [this, id](int) { ended(id); }, [] {}});
    REQUIRE(server);
    pipe.server = std::move(*server);
    if (!frozen_) pipe.flush();
  }

  // A frozen network tells nobody of an end either.
  void ended(int id) {
    if (!frozen_) pipes_.erase(id);
  }

  Loop& loop_;
  const int target_port_;
  int port_ = 0;
  bool frozen_ = false;
  size_t accepted_ = 0;
  int next_id_ = 0;
  Owned<TcpListener> listener_;
  std::map<int, std::unique_ptr<Pipe>> pipes_;
};

}  // namespace muster
