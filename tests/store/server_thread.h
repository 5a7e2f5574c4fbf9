// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <future>
#include <thread>

#include "loop/fd_watch.h"
#include "loop/loop.h"
#include "loop/socket_address.h"
#include "loop/unique_fd.h"
#include "store/server.h"

namespace muster {

// A store server with a loop and a thread of its own, for blocking clients in the test's thread.
class ServerThread {
 public:
  ServerThread() {
    int fds[2];
    REQUIRE(pipe(fds) == 0);
    stop_read_.reset(fds[0]);
    stop_write_.reset(fds[1]);
    std::promise<int> port;
    std::future<int> known = port.get_future();
    thread_ = std::thread([this, &port] { serve(port); });
    port_ = known.get();
  }
  ~ServerThread() {
    stop_write_.reset();
    thread_.join();
  }
  int port() const { return port_; }

 private:
  void serve(std::promise<int>& port) {
    Loop loop;
    auto server = StoreServer::listen(loop, "127.0.0.1", 0, {[](const std::string&) {}});
    MUST(server.has_value());
    auto stop =
        FdWatch::start(loop, stop_read_.get(), FdWatch::kReadable, [&](int) { loop.stop(); });
    MUST(stop.has_value());
    port.set_value((*server)->port());
    loop.run();
  }

  UniqueFd stop_read_, stop_write_;
  std::thread thread_;
  int port_ = 0;
};

// A server that does whatever a test wants with each connection it accepts, one after another.
class ScriptedServer {
 public:
  explicit ScriptedServer(std::function<void(int fd)> script) : script_(std::move(script)) {
    listener_.reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    SocketAddress any = *SocketAddress::parse("127.0.0.1", 0);
    REQUIRE(bind(listener_.get(), any.raw(), any.size()) == 0);
    REQUIRE(listen(listener_.get(), 16) == 0);
    thread_ = std::thread([this] {
      for (;;) {
        UniqueFd fd(accept(listener_.get(), nullptr, nullptr));
        if (!fd) return;
        ++connections;
        script_(fd.get());
      }
    });
  }
  ~ScriptedServer() {
    shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  int port() const { return SocketAddress::local(listener_.get()).port(); }

  static std::string read_exactly(int fd, size_t size) {
    std::string bytes(size, '\0');
    return recv(fd, bytes.data(), size, MSG_WAITALL) == static_cast<ssize_t>(size) ? bytes : "";
  }
  static void write(int fd, const std::string& bytes) {
    CHECK(send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
  }
  // Answers the greeting.
  static void greet(int fd) { write(fd, read_exactly(fd, 10).substr(6)); }
  // Holds until the client leaves.
  static void until_closed(int fd) {
    char byte;
    while (recv(fd, &byte, 1, 0) > 0) {
    }
  }

  std::atomic<int> connections = 0;

 private:
  std::function<void(int fd)> script_;
  UniqueFd listener_;
  std::thread thread_;
};

}  // namespace muster
