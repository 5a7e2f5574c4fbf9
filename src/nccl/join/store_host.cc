// SPDX-License-Identifier: Apache-2.0
#include "nccl/join/store_host.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include "loop/unique_fd.h"
#include "nccl/join/roll_call.h"
#include "store/deadline.h"
#include "store/session.h"

namespace muster::comm::detail {

namespace {

constexpr size_t kReadBuffer = size_t{256} << 10;
// Capacity that idle buffers may keep.
constexpr size_t kKeptCapacity = size_t{256} << 10;
// Connections accepted, and events taken, in one turn.
constexpr int kBatch = 256;
// After which a peer is tried again that there was no descriptor for: nothing tells when there is
// one, since the rest of the process uses them too.
constexpr Duration kTryAgain{100};
// Lines about bad peers in a host's life: a port scanner must not fill the console.
constexpr int kMaxLines = 5;

constexpr uint64_t kListener = 0, kWake = 1;  // where a ClientId would stand; clients begin at 2

Error system_error(const std::string& what) {
  return Error{ErrorCode::kSystem, what + ": " + std::strerror(errno)};
}

// All addresses of both families, or of IPv4 alone where there is no IPv6.
Result<UniqueFd> listen_anywhere(int port) {
  for (const char* any : {"::", "0.0.0.0"}) {
    const SocketAddress address = *SocketAddress::parse(any, port);
    const std::string where = "store: listen on " + address.to_string();
    UniqueFd fd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int on = 1, off = 0;
    if (fd) {
      setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
      if (address.family() == AF_INET6)
        setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
      if (::bind(fd.get(), address.raw(), address.size()) == 0 &&
          ::listen(fd.get(), SOMAXCONN) == 0)
        return fd;
    }
    if (address.family() == AF_INET || errno == EADDRINUSE || errno == EACCES) {
      const char* hint = errno == EADDRINUSE ? "; another program uses this port" : "";
      Error error = system_error(where);
      error.message += hint;
      return error;
    }
  }
  return Error{ErrorCode::kSystem, "store: no address to listen on"};
}

}  // namespace

struct StoreHost::Impl final : Outbox {
  struct Connection;

  explicit Impl(Limits the_limits)
      : limits(the_limits),
        read_buffer(std::make_unique_for_overwrite<char[]>(kReadBuffer)),
        state(*this) {}

  Result<void> start(int the_port);
  void serve();
  void accept_some();
  void pause_accepting(bool pause);
  void on_event(Connection& connection, uint32_t events);
  bool read_some(Connection& connection);
  bool feed(Connection& connection, std::string_view bytes);
  void update(Connection& connection);
  void drop(Connection& connection);
  void drop_doomed();
  void blame(const Connection& connection, const std::string& why);
  void send(ClientId client, std::string_view bytes) override;
  void tell_watcher();
  bool over() const;

  const Limits limits;
  UniqueFd poller, wake, listener;
  int port = 0;
  std::thread thread;

  // The thread's own.
  std::unique_ptr<char[]> read_buffer;
  std::string reply_buffer;
  StoreState state;
  std::unordered_map<ClientId, std::unique_ptr<Connection>> connections;
  std::vector<ClientId> doomed;  // found over their limit while another was served
  ClientId next_id = 2;
  bool accepting = true;
  std::optional<Deadline> try_again;  // not accepting until then, for want of descriptors
  int lines = 0;

  // Shared with the callers.
  std::mutex mutex;
  std::condition_variable changed;
  bool stop = false;
  std::vector<SocketAddress> own;
  std::string awaited;  // the key that wait_until_over() waits for; "": nobody waits
  bool is_over = false;
};

struct StoreHost::Impl::Connection final : Replies {
  Connection(Impl& the_host, ClientId the_id, UniqueFd the_socket, const SocketAddress& the_peer)
      : Replies(the_host.reply_buffer),
        host(the_host),
        id(the_id),
        peer(the_peer),
        socket(std::move(the_socket)),
        session(the_host.state, the_id) {}

  size_t left() const { return unsent.size() - sent; }
  bool full() const override { return left() >= host.limits.pause_at; }
  bool overflowed() const override { return left() > host.limits.max_unsent; }
  void send(std::string_view bytes) override {
    if (left() == 0) bytes.remove_prefix(write(bytes));
    unsent.append(bytes);
  }

  // How much the kernel took. A broken connection is noticed when it is read.
  size_t write(std::string_view bytes) {
    size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t n =
          ::send(socket.get(), bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
      if (n > 0)
        done += static_cast<size_t>(n);
      else if (errno != EINTR)
        break;
    }
    return done;
  }

  void write_more() {
    sent += write(std::string_view(unsent).substr(sent));
    if (left() > 0) return;
    sent = 0;
    unsent.clear();
    if (unsent.capacity() > kKeptCapacity) unsent.shrink_to_fit();
  }

  Impl& host;
  const ClientId id;
  const SocketAddress peer;
  UniqueFd socket;
  Session session;
  std::string unsent;
  size_t sent = 0;  // of `unsent`
  uint32_t events = EPOLLIN;
};

Result<void> StoreHost::Impl::start(int the_port) {
  Result<UniqueFd> listening = listen_anywhere(the_port);
  if (!listening) return listening.error();
  listener = std::move(*listening);
  port = SocketAddress::local(listener.get()).port();
  poller.reset(epoll_create1(EPOLL_CLOEXEC));
  wake.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!poller || !wake) return system_error("store: epoll");
  for (const auto& [fd, id] : {std::pair(listener.get(), kListener), {wake.get(), kWake}}) {
    epoll_event event{EPOLLIN, {.u64 = id}};
    if (epoll_ctl(poller.get(), EPOLL_CTL_ADD, fd, &event) != 0)
      return system_error("store: epoll_ctl");
  }
  thread = std::thread([this] { serve(); });
  return {};
}

void StoreHost::Impl::serve() {
  epoll_event events[kBatch];
  for (;;) {
    const int wait = try_again ? static_cast<int>(time_left(*try_again).count()) : -1;
    const int count = epoll_wait(poller.get(), events, kBatch, wait);
    if (try_again && time_left(*try_again) == Duration(0)) pause_accepting(false);
    for (int i = 0; i < count; ++i) {
      const uint64_t id = events[i].data.u64;
      if (id == kListener) {
        accept_some();
      } else if (id == kWake) {
        uint64_t ignored;
        static_cast<void>(::read(wake.get(), &ignored, sizeof ignored));
      } else if (auto it = connections.find(id); it != connections.end()) {
        on_event(*it->second, events[i].events);
      }
    }
    drop_doomed();
    std::lock_guard lock(mutex);
    if (stop) return;
    tell_watcher();
  }
}

void StoreHost::Impl::accept_some() {
  for (int i = 0; i < kBatch; ++i) {
    if (connections.size() >= limits.connections) return pause_accepting(true);
    SocketAddress peer;
    socklen_t size = SocketAddress::kCapacity;
    UniqueFd fd(::accept4(listener.get(), peer.raw(), &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd && errno == EAGAIN) return;
    // Everything else than these concerns that one peer.
    if (!fd && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
      pause_accepting(true);
      try_again = deadline_in(kTryAgain);
      return;
    }
    if (!fd) continue;
    const int on = 1;
    setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    const ClientId id = next_id++;
    epoll_event event{EPOLLIN, {.u64 = id}};
    if (epoll_ctl(poller.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0) continue;
    connections.emplace(id, std::make_unique<Connection>(*this, id, std::move(fd),
                                                         SocketAddress::from(peer.raw())));
  }
}

void StoreHost::Impl::pause_accepting(bool pause) {
  accepting = !pause;
  try_again.reset();
  epoll_event event{pause ? 0U : EPOLLIN, {.u64 = kListener}};
  epoll_ctl(poller.get(), EPOLL_CTL_MOD, listener.get(), &event);
}

void StoreHost::Impl::on_event(Connection& connection, uint32_t events) {
  if ((events & EPOLLOUT) != 0) {
    connection.write_more();
    // A session that stalled because of unsent replies goes on.
    if (connection.session.stalled() && !connection.full() && !feed(connection, {}))
      return drop(connection);
  }
  if ((events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0 && !read_some(connection))
    return drop(connection);
  update(connection);
}

// One read a turn, so that a busy peer cannot starve the others. False: the connection is over.
bool StoreHost::Impl::read_some(Connection& connection) {
  const ssize_t got = ::recv(connection.socket.get(), read_buffer.get(), kReadBuffer, 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got > 0) return feed(connection, {read_buffer.get(), static_cast<size_t>(got)});
  if (connection.session.mid_request()) blame(connection, "it left in the middle of a request");
  return false;
}

bool StoreHost::Impl::feed(Connection& connection, std::string_view bytes) {
  const bool good = connection.session.feed(bytes, connection);
  connection.flush();
  if (reply_buffer.capacity() > kKeptCapacity) reply_buffer.shrink_to_fit();
  if (!good && !connection.session.why().empty()) blame(connection, connection.session.why());
  return good;
}

// Asks for the events that make sense now.
void StoreHost::Impl::update(Connection& connection) {
  uint32_t wanted = 0;
  if (!connection.session.stalled() && !connection.full()) wanted |= EPOLLIN;
  if (connection.left() > 0) wanted |= EPOLLOUT;
  if (wanted == connection.events) return;
  connection.events = wanted;
  epoll_event event{wanted, {.u64 = connection.id}};
  epoll_ctl(poller.get(), EPOLL_CTL_MOD, connection.socket.get(), &event);
}

void StoreHost::Impl::drop(Connection& connection) {
  {
    std::lock_guard lock(mutex);
    std::erase(own, connection.peer);
  }
  connections.erase(ClientId{connection.id});
  if (!accepting) pause_accepting(false);
}

void StoreHost::Impl::drop_doomed() {
  std::vector<ClientId> list;
  list.swap(doomed);
  for (ClientId client : list) {
    auto it = connections.find(client);
    if (it == connections.end()) continue;
    blame(*it->second, "it does not read its notices");
    drop(*it->second);
  }
}

void StoreHost::Impl::blame(const Connection& connection, const std::string& why) {
  if (++lines > kMaxLines) return;
  std::fprintf(stderr, "muster: store: connection of %s closed: %s%s\n",
               connection.peer.to_string().c_str(), why.c_str(),
               lines == kMaxLines ? " (further ones are not told)" : "");
}

void StoreHost::Impl::send(ClientId client, std::string_view bytes) {
  auto it = connections.find(client);
  if (it == connections.end()) return;
  it->second->send(bytes);
  if (it->second->overflowed()) doomed.push_back(client);
  update(*it->second);
}

bool StoreHost::Impl::over() const {
  if (state.table.find(awaited) != nullptr) return true;
  return std::all_of(connections.begin(), connections.end(), [&](const auto& entry) {
    return std::find(own.begin(), own.end(), entry.second->peer) != own.end();
  });
}

// Under the lock.
void StoreHost::Impl::tell_watcher() {
  if (awaited.empty() || is_over || !over()) return;
  is_over = true;
  changed.notify_all();
}

StoreHost::StoreHost(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

StoreHost::~StoreHost() {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->stop = true;
  }
  const uint64_t one = 1;
  static_cast<void>(::write(impl_->wake.get(), &one, sizeof one));
  impl_->thread.join();
}

Result<std::unique_ptr<StoreHost>> StoreHost::listen(int port) {
  return listen(port, Limits());
}

Result<std::unique_ptr<StoreHost>> StoreHost::listen(int port, Limits limits) {
  auto impl = std::make_unique<Impl>(limits);
  if (Result<void> started = impl->start(port); !started) return started.error();
  return std::unique_ptr<StoreHost>(new StoreHost(std::move(impl)));
}

int StoreHost::port() const {
  return impl_->port;
}

void StoreHost::add_own(const SocketAddress& client) {
  std::lock_guard lock(impl_->mutex);
  impl_->own.push_back(client);
}

bool StoreHost::wait_until_over(const std::string& key, Deadline deadline) {
  std::unique_lock lock(impl_->mutex);
  impl_->awaited = "/" + key;  // as the clients put it on the wire
  const uint64_t one = 1;
  static_cast<void>(::write(impl_->wake.get(), &one, sizeof one));
  return impl_->changed.wait_until(lock, deadline, [&] { return impl_->is_over; });
}

}  // namespace muster::comm::detail
