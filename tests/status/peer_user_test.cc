// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/peer_user.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loop/check.h"
#include "skip.h"

namespace muster {

namespace {

constexpr uid_t kOtherUser = 65534;

// A listener and a connection to it, made by a process of another user if that is asked for.
struct Connection {
  UniqueFd listener;
  UniqueFd accepted;
  UniqueFd own_client;
  int child = 0;
  UniqueFd child_stays;  // closing it ends the child
  SocketAddress peer;
  SocketAddress local;

  explicit Connection(const std::string& address, const std::string& client_address = "") {
    auto at = SocketAddress::parse(address, 0);
    REQUIRE(at);
    listener = UniqueFd(::socket(at->family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::bind(listener.get(), at->raw(), at->size()) == 0);
    REQUIRE(::listen(listener.get(), 1) == 0);
    target_ = SocketAddress::local(listener.get());
    if (!client_address.empty()) {
      target_ = *SocketAddress::parse(client_address, target_.port());
    }
  }
  ~Connection() {
    child_stays.reset();
    if (child > 0) ::waitpid(child, nullptr, 0);
  }

  int connect_to() const {
    const int fd = ::socket(target_.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
    MUST(::connect(fd, target_.raw(), target_.size()) == 0);
    return fd;
  }
  void connect_myself() {
    own_client = UniqueFd(connect_to());
    accept();
  }
  void connect_as(uid_t user) {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      ::close(ends[1]);
      char byte = 0;
      if (::setresuid(user, user, user) != 0) ::_exit(1);
      const int fd = connect_to();
      [[maybe_unused]] const ssize_t end = ::read(ends[0], &byte, 1);
      ::close(fd);
      ::_exit(0);
    }
    ::close(ends[0]);
    child_stays = UniqueFd(ends[1]);
    accept();
  }
  void accept() {
    accepted = UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    REQUIRE(accepted);
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    auto* raw = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(::getpeername(accepted.get(), raw, &size) == 0);
    peer = SocketAddress::from(raw);
    local = SocketAddress::local(accepted.get());
  }

 private:
  SocketAddress target_;
};

// Whether this kernel tells at all; where it does not, a token is needed, which is all there is to
// test.
bool kernel_tells() {
  Connection connection("127.0.0.1");
  connection.connect_myself();
  PeerUser user;
  const bool tells = user.ask(connection.peer, connection.local).has_value();
  if (!tells) say_skipped("the kernel does not tell whose a connection is (sock_diag)");
  return tells;
}

}  // namespace

TEST_CASE("our own connections are ours, over both families") {
  if (!kernel_tells()) return;
  PeerUser user;
  for (const char* address : {"127.0.0.1", "127.7.7.7", "::1"}) {
    CAPTURE(std::string(address));
    Connection connection(address);
    connection.connect_myself();
    CHECK(user.ask(connection.peer, connection.local) == ::geteuid());
  }
  // A client of IPv4 at a listener for both.
  Connection mapped("::", "127.0.0.1");
  mapped.connect_myself();
  CHECK(user.ask(mapped.peer, mapped.local) == ::geteuid());
}

TEST_CASE("a connection of another user is told apart") {
  if (::geteuid() != 0) return say_skipped("only root can become another user");
  if (!kernel_tells()) return;
  PeerUser user;
  for (const char* address : {"127.0.0.1", "::1"}) {
    CAPTURE(std::string(address));
    Connection connection(address);
    connection.connect_as(kOtherUser);
    CHECK(user.ask(connection.peer, connection.local) == kOtherUser);
  }
}

TEST_CASE("a client that has closed its end is nobody, not root") {
  if (!kernel_tells()) return;
  Connection connection("127.0.0.1");
  connection.connect_myself();
  connection.own_client.reset();
  PeerUser user;
  CHECK_FALSE(user.ask(connection.peer, connection.local));
}

TEST_CASE("what does not end on this machine is nobody's") {
  PeerUser user;
  const SocketAddress far = *SocketAddress::parse("192.0.2.1", 4000);
  const SocketAddress local = *SocketAddress::parse("192.0.2.2", 80);
  CHECK_FALSE(user.ask(far, local));
  // Nor is a connection that does not exist.
  CHECK_FALSE(
      user.ask(*SocketAddress::parse("127.0.0.1", 1), *SocketAddress::parse("127.0.0.1", 2)));
}

}  // namespace muster
