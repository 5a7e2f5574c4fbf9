// SPDX-License-Identifier: Apache-2.0
#include "loop/tcp_stream.h"

#include <sys/socket.h>

#include <cerrno>
#include <string>

#include "loop/check.h"
#include "loop/uv_handle.h"

namespace muster {

namespace {

// Sent bytes that may stand at the front of the queue before the rest is moved down.
constexpr size_t kCompactAt = size_t{1} << 20;
// Capacity an empty queue may keep.
constexpr size_t kKeptCapacity = size_t{64} << 10;

// Stands on uv_poll rather than uv_tcp: one recv and one send per request, no SIGPIPE, and the
// unsent bytes are one string instead of a request object each.
class UvTcpStream final : public UvHandle<TcpStream, uv_poll_t> {
 public:
  UvTcpStream(UniqueFd socket, std::span<char> read_buffer, Callbacks callbacks)
      : socket_(std::move(socket)), read_buffer_(read_buffer), callbacks_(std::move(callbacks)) {}

  int init(Loop& loop) { return uv_poll_init(loop.raw(), &uv_, socket_.get()); }

  void write(std::string_view bytes) override {
    if (broken_ || bytes.empty()) return;
    if (unsent() == 0) bytes.remove_prefix(send_now(bytes));
    if (!broken_) queue_.append(bytes);
    update_interest();
  }

  size_t unsent() const override { return queue_.size() - sent_; }

  void set_reading(bool on) override {
    reading_ = on;
    update_interest();
  }

  void finish_writing() override {
    queue_.clear();
    sent_ = 0;
    update_interest();
    shutdown(socket_.get(), SHUT_WR);
  }

  void cut_when_dropped() override {
    const linger at_once{1, 0};
    setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  }

  UniqueFd take_socket() override {
    MUST(unsent() == 0);
    uv_poll_stop(&uv_);
    return std::move(socket_);
  }

  void update_interest() {
    // A broken connection must be read, so that its end is found.
    int wanted = (reading_ || broken_ ? UV_READABLE : 0) | (unsent() > 0 ? UV_WRITABLE : 0);
    if (wanted == interest_) return;
    interest_ = wanted;
    if (wanted == 0) {
      uv_poll_stop(&uv_);
      return;
    }
    uv_poll_start(&uv_, wanted, [](uv_poll_t* uv, int status, int events) noexcept {
      if (auto* self = open<UvTcpStream>(uv)) self->on_ready(status, events);
    });
  }

 private:
  void on_closing() override {
    // Out of epoll first, then closed at once: the peer learns of it now and the number is free.
    uv_poll_stop(&uv_);
    socket_.reset();
  }

  void on_ready(int status, int events) {
    if (status < 0) {  // libuv stopped the poll; recv says what it was
      interest_ = 0;
      broken_ = true;
      events = UV_READABLE;
    }
    if (events & UV_WRITABLE) {
      send_queue();
      update_interest();
      if (unsent() == 0 && !broken_) {
        callbacks_.on_drained();
        if (closing()) return;
      }
    }
    if (events & UV_READABLE) receive();
  }

  void receive() {
    ssize_t got;
    do {
      got = recv(socket_.get(), read_buffer_.data(), read_buffer_.size(), 0);
    } while (got < 0 && errno == EINTR);
    if (got > 0) {
      if (broken_) update_interest();
      callbacks_.on_data({read_buffer_.data(), static_cast<size_t>(got)});
      return;
    }
    if (got < 0 && errno == EAGAIN) {
      update_interest();
      return;
    }
    int code = got < 0 ? errno : 0;
    uv_poll_stop(&uv_);
    callbacks_.on_end(code);
  }

  size_t send_now(std::string_view bytes) {
    ssize_t sent;
    do {
      sent = send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent >= 0) return static_cast<size_t>(sent);
    if (errno != EAGAIN) {
      broken_ = true;
      queue_.clear();
      sent_ = 0;
    }
    return 0;
  }

  void send_queue() {
    if (unsent() == 0) return;
    sent_ += send_now(std::string_view(queue_).substr(sent_));
    if (sent_ == queue_.size()) {
      sent_ = 0;
      queue_.clear();
      if (queue_.capacity() > kKeptCapacity) queue_.shrink_to_fit();
    } else if (sent_ > kCompactAt && sent_ > queue_.size() / 2) {
      queue_.erase(0, sent_);
      sent_ = 0;
    }
  }

  UniqueFd socket_;
  std::span<char> read_buffer_;
  Callbacks callbacks_;
  std::string queue_;  // what the kernel did not take, from sent_ on
  size_t sent_ = 0;
  int interest_ = 0;
  bool reading_ = true;
  bool broken_ = false;  // a write failed: the reason comes from the next read
};

}  // namespace

UniqueFd TcpStream::release(Owned<TcpStream> stream) {
  UniqueFd socket = stream->take_socket();
  // Closed before anybody can watch the socket again: libuv forgets a descriptor by its number.
  stream.reset();
  return socket;
}

Result<Owned<TcpStream>> TcpStream::adopt(Loop& loop, UniqueFd socket, std::span<char> read_buffer,
                                          Callbacks callbacks) {
  auto* stream = new UvTcpStream(std::move(socket), read_buffer, std::move(callbacks));
  if (int status = stream->init(loop); status != 0) {
    delete stream;  // never initialised, so there is nothing to close
    return errno_error(uv_errno(status), "watch a socket");
  }
  Owned<TcpStream> owned(stream);
  stream->update_interest();
  return owned;
}

}  // namespace muster
