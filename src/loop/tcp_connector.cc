// SPDX-License-Identifier: Apache-2.0
#include "loop/tcp_connector.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "loop/check.h"
#include "loop/fd_watch.h"
#include "loop/tcp_options.h"
#include "loop/uv_handle.h"

namespace muster {

namespace {

// The handle is the timer: it bounds the attempt, and brings a result that was there at once to the
// loop.
class UvTcpConnector final : public UvHandle<TcpConnector, uv_timer_t> {
 public:
  UvTcpConnector(Loop& loop, const SocketAddress& to, Milliseconds timeout,
                 std::function<void(Result<UniqueFd>)> on_result)
      : to_(to), on_result_(std::move(on_result)) {
    MUST(uv_timer_init(loop.raw(), &uv_) == 0);
    uv_update_time(loop.raw());
    code_ = begin(loop);
    wait(code_ == EINPROGRESS ? timeout : Milliseconds(0));
  }

 private:
  void on_closing() override {
    watch_.reset();
    socket_.reset();
  }

  void wait(Milliseconds time) {
    uv_timer_start(
        &uv_,
        [](uv_timer_t* uv) noexcept {
          if (auto* self = open<UvTcpConnector>(uv)) self->on_time();
        },
        static_cast<uint64_t>(std::max<int64_t>(0, time.count())), 0);
  }

  // An errno: EINPROGRESS while there is something to wait for.
  int begin(Loop& loop) {
    socket_.reset(::socket(to_.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket_ || !set_tcp_options(socket_.get())) return errno;
    if (::connect(socket_.get(), to_.raw(), to_.size()) == 0) return 0;
    if (errno != EINPROGRESS) return errno;
    auto watch = FdWatch::start(loop, socket_.get(), FdWatch::kWritable, [this](int) { finish(); });
    if (!watch) return watch.error().code;
    watch_ = std::move(*watch);
    return EINPROGRESS;
  }

  void finish() {
    int code = 0;
    socklen_t size = sizeof code;
    if (getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &code, &size) != 0) code = errno;
    tell(code);
  }

  void on_time() { tell(code_ == EINPROGRESS ? ETIMEDOUT : code_); }

  void tell(int code) {
    uv_timer_stop(&uv_);
    watch_.reset();
    if (code == 0 && is_own_peer(socket_.get())) code = ECONNREFUSED;
    if (code == 0) {
      on_result_(std::move(socket_));
    } else {
      socket_.reset();
      on_result_(errno_error(code, "connect to " + to_.to_string()));
    }
  }

  const SocketAddress to_;
  std::function<void(Result<UniqueFd>)> on_result_;
  UniqueFd socket_;
  Owned<FdWatch> watch_;
  int code_ = 0;
};

}  // namespace

Owned<TcpConnector> TcpConnector::connect(Loop& loop, const SocketAddress& to, Milliseconds timeout,
                                          std::function<void(Result<UniqueFd>)> on_result) {
  return Owned<TcpConnector>(new UvTcpConnector(loop, to, timeout, std::move(on_result)));
}

bool is_own_peer(int fd) {
  SocketAddress peer;
  socklen_t size = SocketAddress::kCapacity;
  return getpeername(fd, peer.raw(), &size) == 0 &&
         SocketAddress::from(peer.raw()) == SocketAddress::local(fd);
}

}  // namespace muster
