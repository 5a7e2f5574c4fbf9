// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/tcp.h>

#include <optional>
#include <vector>

#include "loop/loop_test.h"
#include "loop/tcp_connector.h"
#include "loop/tcp_listener.h"
#include "loop/tcp_stream.h"

namespace muster {

namespace {

struct ConnectorTest : LoopTest {
  std::optional<Result<UniqueFd>> result;
  Owned<TcpConnector> connector;
  UniqueFd accepted;
  Owned<TcpListener> listener;

  int listen() {
    auto listening = TcpListener::listen(
        loop, "127.0.0.1", 0,
        {[this](UniqueFd socket, const SocketAddress&) { accepted = std::move(socket); }, {}});
    REQUIRE(listening.has_value());
    listener = std::move(*listening);
    return listener->port();
  }

  void connect(const std::string& address, int port, Milliseconds timeout = Milliseconds(20'000)) {
    auto to = SocketAddress::parse(address, port);
    REQUIRE(to.has_value());
    connector = TcpConnector::connect(loop, *to, timeout, [this](Result<UniqueFd> connected) {
      connector.reset();  // allowed inside its own callback
      result = std::move(connected);
    });
  }

  // An error, or nothing if it connected.
  Error failed() {
    CHECK_FALSE(result);  // never from inside the call
    REQUIRE(run_until([this] { return result.has_value(); }));
    return result->has_value() ? Error{} : result->error();
  }
};

int option(int fd, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  getsockopt(fd, level, name, &value, &size);
  return value;
}

// A port that nobody listens at, kept from others.
struct ClosedPort {
  UniqueFd socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  int port = 0;

  ClosedPort() {
    auto at = SocketAddress::parse("127.0.0.1", 0);
    REQUIRE(bind(socket.get(), at->raw(), at->size()) == 0);
    port = SocketAddress::local(socket.get()).port();
  }
};

}  // namespace

TEST_CASE_FIXTURE(ConnectorTest, "a connection carries bytes and has the options of ours") {
  connect("127.0.0.1", listen());
  CHECK(failed().message.empty());
  const int fd = result->value().get();
  CHECK(option(fd, IPPROTO_TCP, TCP_NODELAY) == 1);
  CHECK(option(fd, SOL_SOCKET, SO_KEEPALIVE) == 1);
  CHECK((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
  CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
  std::vector<char> buffer(100);
  std::string received;
  REQUIRE(run_until([this] { return static_cast<bool>(accepted); }));
  auto stream = TcpStream::adopt(loop, std::move(**result), buffer,
                                 {[&](std::string_view bytes) { received += bytes; }, {}, {}});
  REQUIRE(stream.has_value());
  REQUIRE(send(accepted.get(), "hello", 5, 0) == 5);
  CHECK(run_until([&] { return received == "hello"; }));
}

TEST_CASE_FIXTURE(ConnectorTest, "a port that nobody listens at refuses") {
  ClosedPort closed;
  connect("127.0.0.1", closed.port);
  const Error error = failed();
  CHECK(error.code == ECONNREFUSED);
  CHECK(error.message ==
        "connect to 127.0.0.1:" + std::to_string(closed.port) + ": Connection refused");
}

TEST_CASE_FIXTURE(ConnectorTest, "no answer is a time-out") {
  // A full queue of connections that nobody accepts: the kernel answers no further one.
  UniqueFd full(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  auto at = SocketAddress::parse("127.0.0.1", 0);
  REQUIRE(bind(full.get(), at->raw(), at->size()) == 0);
  REQUIRE(::listen(full.get(), 0) == 0);
  at = SocketAddress::local(full.get());
  std::vector<UniqueFd> waiting;
  for (int i = 0; i < 3; ++i) {
    waiting.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    ::connect(waiting.back().get(), at->raw(), at->size());
  }
  connect("127.0.0.1", at->port(), Milliseconds(30));
  CHECK(failed().code == ETIMEDOUT);
}

TEST_CASE_FIXTURE(ConnectorTest, "what the kernel refuses at once is told from the loop") {
  connect("255.255.255.255", 1);
  CHECK(failed().code != 0);
}

TEST_CASE_FIXTURE(ConnectorTest, "a dropped attempt is silent and closes its socket") {
  connect("127.0.0.1", listen());
  connector.reset();
  REQUIRE(run_until([this] { return static_cast<bool>(accepted); }));
  char byte;
  CHECK(run_until([&] { return recv(accepted.get(), &byte, 1, 0) == 0; }));
  CHECK_FALSE(result.has_value());
}

TEST_CASE("a connection to itself is found out") {
  ClosedPort own;
  auto at = SocketAddress::parse("127.0.0.1", own.port);
  REQUIRE(connect(own.socket.get(), at->raw(), at->size()) == 0);
  CHECK(is_own_peer(own.socket.get()));
}

}  // namespace muster
