// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <functional>
#include <string>

#include "loop/loop.h"
#include "loop/socket_address.h"
#include "loop/timer.h"
#include "loop/unique_fd.h"

namespace muster {

// A plain socket on the other side of a server that runs in the test's own loop.
class TestPeer {
 public:
  TestPeer(Loop& loop, int port, const std::string& address = "127.0.0.1") : loop_(loop) {
    Result<SocketAddress> at = SocketAddress::parse(address, port);
    REQUIRE(at.has_value());
    fd_.reset(::socket(at->family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(fd_);
    // The kernel completes this without the server's help.
    REQUIRE(::connect(fd_.get(), at->raw(), at->size()) == 0);
  }

  // Turns the loop as long as the kernel does not take everything.
  void send(const std::string& bytes) {
    size_t sent = 0;
    REQUIRE(wait_for([&] {
      sent += send_some(std::string_view(bytes).substr(sent));
      return sent == bytes.size();
    }));
  }

  // What the kernel takes of it now, without turning the loop.
  size_t send_some(std::string_view bytes) {
    ssize_t n = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    return n > 0 ? static_cast<size_t>(n) : 0;
  }

  // Turns the loop until `size` bytes came or the connection ended; what there is then.
  std::string receive(size_t size) {
    std::string got;
    wait_for([&] {
      read_into(got, size);
      return got.size() == size || ended_;
    });
    return got;
  }

  std::string ask(const std::string& bytes, size_t reply_size) {
    send(bytes);
    return receive(reply_size);
  }

  // Turns the loop until the server has closed.
  bool closed() {
    std::string ignored;
    return wait_for([&] {
      read_into(ignored, SIZE_MAX);
      return ended_;
    });
  }

  void leave() { fd_.reset(); }
  int fd() const { return fd_.get(); }

 private:
  bool wait_for(const std::function<bool()>& done) {
    if (done()) return true;
    // The loop does not watch this socket, so something has to turn it.
    Owned<Timer> tick = Timer::repeat(loop_, Milliseconds(2), [] {});
    return loop_.run_until(done, Milliseconds(20'000));
  }

  void read_into(std::string& got, size_t wanted) {
    char buffer[65536];
    while (got.size() < wanted) {
      ssize_t n =
          ::recv(fd_.get(), buffer, std::min(sizeof buffer, wanted - got.size()), MSG_DONTWAIT);
      if (n < 0 && errno == EAGAIN) return;
      if (n <= 0) {
        ended_ = true;
        return;
      }
      got.append(buffer, static_cast<size_t>(n));
    }
  }

  Loop& loop_;
  UniqueFd fd_;
  bool ended_ = false;
};

}  // namespace muster
