// SPDX-License-Identifier: Apache-2.0
#include "loop/tcp_listener.h"

#include <cerrno>
#include <fstream>

#include "loop/check.h"
#include "loop/tcp_options.h"
#include "loop/timer.h"
#include "loop/uv_handle.h"

namespace muster {

namespace {

// Connections taken in one turn before others get theirs.
constexpr int kMaxAcceptsPerTurn = 256;
// How long accepting rests when the process or the machine is out of descriptors.
constexpr Milliseconds kAcceptRest{100};
// Accepted sockets inherit these from the listening one (Linux), which saves five calls for each.
bool set_options(int fd, int family) {
  return set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1) && set_tcp_options(fd) &&
         (family != AF_INET6 || set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0));
}

class UvTcpListener final : public UvHandle<TcpListener, uv_poll_t> {
 public:
  UvTcpListener(Loop& loop, UniqueFd socket, Callbacks callbacks)
      : loop_(loop),
        socket_(std::move(socket)),
        port_(SocketAddress::local(socket_.get()).port()),
        callbacks_(std::move(callbacks)) {}

  int init() { return uv_poll_init(loop_.raw(), &uv_, socket_.get()); }

  void start() {
    uv_poll_start(&uv_, UV_READABLE, [](uv_poll_t* uv, int, int) noexcept {
      if (auto* self = open<UvTcpListener>(uv)) self->accept_some();
    });
  }

  int port() const override { return port_; }

  // The queue is first in, first out, and the kernel tells its length.
  void mark() override {
    tcp_info info{};
    socklen_t size = sizeof info;
    MUST(getsockopt(socket_.get(), IPPROTO_TCP, TCP_INFO, &info, &size) == 0);
    unaccepted_ = info.tcpi_unacked;
  }

  bool before_mark() const override { return before_mark_; }

 private:
  void on_closing() override {
    uv_poll_stop(&uv_);
    rest_.reset();
    socket_.reset();
  }

  void accept_some() {
    for (int i = 0; i < kMaxAcceptsPerTurn; ++i) {
      SocketAddress peer;
      socklen_t size = SocketAddress::kCapacity;
      UniqueFd socket(accept4(socket_.get(), peer.raw(), &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket) {
        if (errno == EINTR) continue;
        if (errno == ECONNABORTED) {  // it left the queue
          pass_mark();
          continue;
        }
        if (errno != EAGAIN) rest(errno);
        return;
      }
      before_mark_ = pass_mark();
      callbacks_.on_connection(std::move(socket), SocketAddress::from(peer.raw()));
      if (closing()) return;
    }
  }

  // One has left the queue: whether it was from before the mark.
  bool pass_mark() {
    if (unaccepted_ == 0) return false;
    --unaccepted_;
    return true;
  }

  // The socket stays readable while it cannot be accepted from, so polling it would spin.
  void rest(int code) {
    uv_poll_stop(&uv_);
    rest_ = Timer::start(loop_, kAcceptRest, [this] { start(); });
    rest_->unref();
    if (said_ == code) return;
    said_ = code;
    std::string message = "accept on port " + std::to_string(port_) + ": " + std::strerror(code);
    if (code == EMFILE) message += "; new connections wait (raise the limit with ulimit -n)";
    callbacks_.on_trouble(message);
  }

  Loop& loop_;
  UniqueFd socket_;
  const int port_;
  Callbacks callbacks_;
  Owned<Timer> rest_;
  int said_ = 0;              // the errno that was told last
  uint32_t unaccepted_ = 0;   // how many of the queue came before the mark
  bool before_mark_ = false;  // the one handed out last did
};

Result<UniqueFd> bind_and_listen(const SocketAddress& at) {
  const std::string where = at.to_string();
  UniqueFd socket(::socket(at.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return errno_error(errno, "listen on " + where);
  if (!set_options(socket.get(), at.family())) return errno_error(errno, "set up socket " + where);
  if (bind(socket.get(), at.raw(), at.size()) != 0) return errno_error(errno, "bind " + where);
  if (::listen(socket.get(), max_listen_backlog()) != 0)
    return errno_error(errno, "listen on " + where);
  return socket;
}

}  // namespace

Result<Owned<TcpListener>> TcpListener::listen(Loop& loop, const std::string& address, int port,
                                               Callbacks callbacks) {
  Result<SocketAddress> at = SocketAddress::parse(address, port);
  if (!at) return at.error();
  Result<UniqueFd> socket = bind_and_listen(*at);
  if (!socket) return socket.error();
  auto* listener = new UvTcpListener(loop, std::move(*socket), std::move(callbacks));
  if (int status = listener->init(); status != 0) {
    delete listener;  // never initialised, so there is nothing to close
    return errno_error(uv_errno(status), "watch " + at->to_string());
  }
  Owned<TcpListener> owned(listener);
  listener->start();
  return owned;
}

int max_listen_backlog() {
  int value = 0;
  std::ifstream file("/proc/sys/net/core/somaxconn");
  return file >> value && value > 0 ? value : SOMAXCONN;
}

}  // namespace muster
