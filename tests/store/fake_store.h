// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "store/bytes.h"
#include "store/session.h"

namespace muster {

// A store without sockets: sessions whose replies are strings.
class FakeStore : public Outbox {
 public:
  class Client : public Replies {
   public:
    Client(FakeStore& store, ClientId the_id)
        : Replies(store.buffer_), id(the_id), session(std::in_place, store.state, the_id) {}

    // Feeds bytes; false once the session wants the connection closed.
    bool feed(const std::string& bytes) {
      open = open && session->feed(bytes, *this);
      flush();
      return open;
    }
    // Feeds bytes and takes everything that the client has been sent since the last call.
    std::string ask(const std::string& bytes) {
      feed(bytes);
      return take();
    }
    std::string take() { return std::exchange(received, {}); }

    bool full() const override { return received.size() >= full_at; }
    bool overflowed() const override { return received.size() > max_unread; }

    const ClientId id;
    std::optional<Session> session;
    std::string received;
    bool open = true;
    size_t full_at = SIZE_MAX;
    size_t max_unread = SIZE_MAX;

   private:
    void send(std::string_view bytes) override { received.append(bytes); }
  };

  FakeStore() : state(*this) {}

  // A connection that has not said anything.
  Client& connect() {
    ClientId id = next_++;
    return *clients_.emplace(id, std::make_unique<Client>(*this, id)).first->second;
  }
  // A current client that has greeted.
  Client& greeted() {
    Client& client = connect();
    client.ask(request::validate().add(request::ping(7)).text);
    return client;
  }
  void disconnect(Client& client) { clients_.erase(ClientId{client.id}); }

  void send(ClientId client, std::string_view bytes) override {
    clients_.at(client)->received.append(bytes);
  }

  StoreState state;

 private:
  std::string buffer_;
  ClientId next_ = 1;
  std::map<ClientId, std::unique_ptr<Client>> clients_;
};

}  // namespace muster
