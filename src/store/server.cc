// SPDX-License-Identifier: Apache-2.0
#include "store/server.h"

#include <cerrno>
#include <cstring>
#include <unordered_map>

#include "loop/tcp_listener.h"
#include "loop/tcp_stream.h"
#include "loop/timer.h"
#include "store/session.h"
#include "store/trouble.h"

namespace muster {

namespace {

// What one read may take. All connections share it.
constexpr size_t kReadBuffer = size_t{256} << 10;
// Capacity the shared reply buffer may keep.
constexpr size_t kKeptReplies = size_t{256} << 10;
// Clients whose last wait is remembered, and how much of its key.
constexpr size_t kMaxLeftWaiting = 1024;
constexpr size_t kMaxLeftKey = 256;

}  // namespace

struct StoreServer::Impl final : Outbox {
  struct Connection;

  Impl(Loop& the_loop, Callbacks callbacks, Limits the_limits)
      : loop(the_loop),
        limits(the_limits),
        trouble(the_loop, std::move(callbacks.on_trouble)),
        on_stranger(std::move(callbacks.on_stranger)),
        allow(std::move(callbacks.allow)),
        read_buffer(std::make_unique_for_overwrite<char[]>(kReadBuffer)),
        state(*this) {
    state.strangers = on_stranger != nullptr;
    state.objection = [this](ClientId client) { return objection(*connections.at(client)); };
  }

  Result<void> start(const std::string& address, int port);
  void accepted(UniqueFd socket, const SocketAddress& peer);
  void received(Connection& connection, std::string_view bytes);
  std::optional<std::string> objection(const Connection& connection) const;
  void hand_over(Connection& connection);
  void hand_over_held();
  void ended(Connection& connection, int code);
  void note_wait(const Connection& connection);
  void reset();
  void drop_old();
  void send(ClientId client, std::string_view bytes) override;
  void blame(const Connection& connection, const std::string& why);
  void drop_doomed();

  Loop& loop;
  const Limits limits;
  TroubleLines trouble;
  OnStranger on_stranger;
  Allow allow;
  std::unique_ptr<char[]> read_buffer;
  std::string reply_buffer;
  StoreState state;
  std::unordered_map<ClientId, std::unique_ptr<Connection>> connections;
  std::vector<ClientId> doomed;  // found over their limit while another was served
  Owned<TcpListener> listener;
  Owned<Timer> old_patience;
  Owned<Timer> held_strangers;
  std::unordered_map<uint32_t, std::string> left_waiting;  // by pid
  ClientId next_id = 1;
  uint64_t accepted_count = 0;
  uint64_t bad_peers = 0;
  bool legacy_seen = false;
};

struct StoreServer::Impl::Connection final : Replies {
  Connection(Impl& server, ClientId the_id, const SocketAddress& the_peer)
      : Replies(server.reply_buffer),
        limits(server.limits),
        id(the_id),
        peer(the_peer),
        old(server.listener->before_mark()),
        session(server.state, the_id) {}

  bool full() const override { return stream->unsent() >= limits.pause_at; }
  bool overflowed() const override { return stream->unsent() > limits.max_unsent; }
  void send(std::string_view bytes) override { stream->write(bytes); }

  const Limits& limits;
  const ClientId id;
  const SocketAddress peer;
  bool old;           // from before the last reset: nobody but a stranger
  bool near = false;  // on this machine
  Session session;
  Owned<TcpStream> stream;
};

Result<void> StoreServer::Impl::start(const std::string& address, int port) {
  TcpListener::Callbacks callbacks{
      [this](UniqueFd socket, const SocketAddress& peer) { accepted(std::move(socket), peer); },
      [this](const std::string& message) { trouble.say("store: " + message); },
  };
  auto listening = TcpListener::listen(loop, address, port, callbacks);
  if (!listening && address == "::" && listening.error().code != EADDRINUSE)
    listening = TcpListener::listen(loop, "0.0.0.0", port, callbacks);
  if (!listening) return Error{listening.error().code, "store: " + listening.error().message};
  listener = std::move(*listening);
  return {};
}

void StoreServer::Impl::accepted(UniqueFd socket, const SocketAddress& peer) {
  ++accepted_count;
  auto connection = std::make_unique<Connection>(*this, next_id++, peer);
  if (connection->old && !state.strangers) return;
  Connection* raw = connection.get();
  raw->near = peer.same_host(SocketAddress::local(socket.get()));
  auto stream = TcpStream::adopt(
      loop, std::move(socket), {read_buffer.get(), kReadBuffer},
      {[this, raw](std::string_view bytes) { received(*raw, bytes); },
       [this, raw](int code) { ended(*raw, code); }, [this, raw] { received(*raw, {}); }});
  if (!stream) {
    trouble.say("store: " + stream.error().message);
    return;
  }
  connection->stream = std::move(*stream);
  connections.emplace(raw->id, std::move(connection));
}

// Also called without bytes, when unsent replies are gone and a stalled session can go on.
void StoreServer::Impl::received(Connection& connection, std::string_view bytes) {
  const bool good = connection.session.feed(bytes, connection);
  connection.flush();
  if (reply_buffer.capacity() > kKeptReplies) reply_buffer.shrink_to_fit();
  legacy_seen |= connection.session.legacy();
  if (good) {
    connection.stream->set_reading(!connection.session.stalled() && !connection.full());
  } else if (connection.session.stranger()) {
    return hand_over(connection);
  } else {
    if (!connection.session.why().empty()) blame(connection, connection.session.why());
    connections.erase(ClientId{connection.id});
  }
  if (!doomed.empty()) drop_doomed();
}

std::optional<std::string> StoreServer::Impl::objection(const Connection& connection) const {
  if (connection.old) return "";
  if (allow && !allow(connection.peer)) return "its address is not allowed to use the store";
  return std::nullopt;
}

void StoreServer::Impl::hand_over(Connection& connection) {
  if (!on_stranger) return connection.stream->set_reading(false);
  UniqueFd socket = TcpStream::release(std::move(connection.stream));
  std::string bytes = connection.session.take_bytes();
  const SocketAddress peer = connection.peer;
  connections.erase(ClientId{connection.id});
  const OnStranger take = on_stranger;  // it may set another
  take(std::move(socket), std::move(bytes), peer);
}

void StoreServer::Impl::hand_over_held() {
  std::vector<ClientId> held;
  for (const auto& [id, connection] : connections) {
    if (connection->session.stranger()) held.push_back(id);
  }
  for (ClientId id : held) {
    auto it = connections.find(id);
    if (it != connections.end()) hand_over(*it->second);
  }
}

// A pid names a client only on this machine.
void StoreServer::Impl::note_wait(const Connection& connection) {
  const uint32_t pid = connection.session.client_pid();
  if (connection.old || pid == 0 || !connection.near) return;
  std::string key = connection.session.waited_for();
  if (key.empty()) return;
  if (left_waiting.size() >= kMaxLeftWaiting && left_waiting.count(pid) == 0) return;
  if (key.size() > kMaxLeftKey) key.resize(kMaxLeftKey);
  left_waiting.insert_or_assign(pid, std::move(key));
}

void StoreServer::Impl::ended(Connection& connection, int code) {
  note_wait(connection);
  // A worker that is killed resets its connections, which is no news; a peer that vanished is.
  if (connection.old) {
    // Nobody awaits it any more.
  } else if (code != 0 && code != ECONNRESET && code != EPIPE) {
    blame(connection, std::strerror(code));
  } else if (connection.session.mid_request()) {
    blame(connection, "it left in the middle of a request");
  } else if (!connection.session.greeted() && !legacy_seen) {
    // 1.13 clients open a second connection that may stay silent; nobody else does.
    blame(connection, "it left without a word");
  }
  connections.erase(ClientId{connection.id});
}

void StoreServer::Impl::send(ClientId client, std::string_view bytes) {
  auto it = connections.find(client);
  if (it == connections.end()) return;
  it->second->stream->write(bytes);
  if (it->second->overflowed()) doomed.push_back(client);
}

void StoreServer::Impl::drop_doomed() {
  std::vector<ClientId> list;
  list.swap(doomed);
  for (ClientId client : list) {
    auto it = connections.find(client);
    if (it == connections.end()) continue;
    blame(*it->second, "it does not read its notices");
    connections.erase(it);
  }
}

// Agents may be among those that wait to be accepted, thousands of them when a job begins, so the
// queue is not dropped: who is old and greets as a client of the store is sent away then.
void StoreServer::Impl::reset() {
  std::erase_if(connections, [&](const auto& entry) {
    return !state.strangers || !entry.second->session.undecided();
  });
  for (auto& [id, connection] : connections)
    connection->old = true;
  listener->mark();
  state.clear();
  left_waiting.clear();
  legacy_seen = false;
  old_patience = Timer::start(loop, limits.old_patience, [this] { drop_old(); });
  old_patience->unref();
}

void StoreServer::Impl::drop_old() {
  std::erase_if(connections, [](const auto& entry) { return entry.second->old; });
}

void StoreServer::Impl::blame(const Connection& connection, const std::string& why) {
  ++bad_peers;
  std::string who = connection.peer.to_string();
  if (uint32_t pid = connection.session.client_pid(); pid != 0)
    who += " (pid " + std::to_string(pid) + ")";
  trouble.say("store: connection of " + who + " closed: " + why);
}

StoreServer::StoreServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

StoreServer::~StoreServer() = default;

Result<std::unique_ptr<StoreServer>> StoreServer::listen(Loop& loop, const std::string& address,
                                                         int port, Callbacks callbacks) {
  return listen(loop, address, port, std::move(callbacks), Limits());
}

Result<std::unique_ptr<StoreServer>> StoreServer::listen(Loop& loop, const std::string& address,
                                                         int port, Callbacks callbacks,
                                                         Limits limits) {
  auto impl = std::make_unique<Impl>(loop, std::move(callbacks), limits);
  if (Result<void> started = impl->start(address, port); !started) return started.error();
  return std::unique_ptr<StoreServer>(new StoreServer(std::move(impl)));
}

int StoreServer::port() const {
  return impl_->listener->port();
}

void StoreServer::hold_strangers() {
  impl_->state.strangers = true;
}

void StoreServer::set_on_stranger(OnStranger on_stranger) {
  impl_->on_stranger = std::move(on_stranger);
  impl_->state.strangers = impl_->on_stranger != nullptr;
  impl_->held_strangers =
      Timer::start(impl_->loop, Milliseconds(0), [impl = impl_.get()] { impl->hand_over_held(); });
}

void StoreServer::set_allow(Allow allow) {
  impl_->allow = std::move(allow);
}

void StoreServer::reset() {
  impl_->reset();
}

bool StoreServer::set(std::string_view key, std::string_view value) {
  const bool stored = impl_->state.set(key, value);
  if (!impl_->doomed.empty()) impl_->drop_doomed();
  return stored;
}

std::optional<std::string> StoreServer::find(std::string_view key) const {
  const std::string* value = impl_->state.table.find(key);
  return value ? std::optional(*value) : std::nullopt;
}

std::vector<StoreWaiter> StoreServer::waiters() const {
  std::vector<StoreWaiter> list;
  impl_->state.waits.for_each([&](const Waiter& waiter) {
    const Impl::Connection& connection = *impl_->connections.at(waiter.client);
    list.push_back({connection.peer.to_string(), connection.session.client_pid(), waiter.since,
                    waiter.barrier, waiter.keys});
  });
  return list;
}

std::string StoreServer::left_waiting(uint32_t pid) const {
  auto it = impl_->left_waiting.find(pid);
  return it == impl_->left_waiting.end() ? "" : it->second;
}

StoreCounters StoreServer::counters() const {
  const StoreState& state = impl_->state;
  return {impl_->connections.size(), impl_->accepted_count, state.requests,  state.table.size(),
          state.table.bytes(),       state.waits.size(),    impl_->bad_peers};
}

}  // namespace muster
