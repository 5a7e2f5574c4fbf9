// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "loop/fd_limit.h"
#include "loop/loop_test.h"
#include "loop/socket_address.h"
#include "loop/tcp_listener.h"
#include "loop/tcp_stream.h"

namespace muster {

namespace {

int option(int fd, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  getsockopt(fd, level, name, &value, &size);
  return value;
}

// Both ends of a connection: `stream` in the loop, `peer` a plain socket.
struct StreamTest : LoopTest {
  UniqueFd peer;
  std::vector<char> buffer = std::vector<char>(4096);
  std::string received;
  int end_code = -1;
  int drained = 0;
  Owned<TcpStream> stream;

  StreamTest() {
    int fds[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) == 0);
    peer.reset(fds[1]);
    auto adopted = TcpStream::adopt(loop, UniqueFd(fds[0]), buffer,
                                    {[this](std::string_view bytes) { received += bytes; },
                                     [this](int code) { end_code = code; }, [this] { ++drained; }});
    REQUIRE(adopted.has_value());
    stream = std::move(*adopted);
  }
};

}  // namespace

TEST_CASE("addresses are parsed and shown, names are refused") {
  CHECK(SocketAddress::parse("127.0.0.1", 80)->to_string() == "127.0.0.1:80");
  CHECK(SocketAddress::parse("::1", 65535)->to_string() == "[::1]:65535");
  CHECK(SocketAddress::parse("::ffff:10.0.0.1", 5)->to_string() == "10.0.0.1:5");
  CHECK_FALSE(SocketAddress::parse("localhost", 80).has_value());
  CHECK_FALSE(SocketAddress::parse("", 80).has_value());
  CHECK_FALSE(SocketAddress::parse("127.0.0.1", 65536).has_value());
  CHECK_FALSE(SocketAddress::parse("127.0.0.1", -1).has_value());
}

TEST_CASE_FIXTURE(LoopTest, "an accepted socket is non-blocking, keeps alive and does not delay") {
  UniqueFd accepted;
  SocketAddress from;
  auto listener = TcpListener::listen(loop, "127.0.0.1", 0,
                                      {[&](UniqueFd socket, const SocketAddress& peer) {
                                         accepted = std::move(socket);
                                         from = peer;
                                       },
                                       {}});
  REQUIRE(listener.has_value());
  UniqueFd client(socket(AF_INET, SOCK_STREAM, 0));
  auto at = SocketAddress::parse("127.0.0.1", (*listener)->port());
  REQUIRE(connect(client.get(), at->raw(), at->size()) == 0);
  REQUIRE(run_until([&] { return static_cast<bool>(accepted); }));
  CHECK(option(accepted.get(), IPPROTO_TCP, TCP_NODELAY) == 1);
  CHECK(option(accepted.get(), SOL_SOCKET, SO_KEEPALIVE) == 1);
  CHECK(option(accepted.get(), IPPROTO_TCP, TCP_KEEPIDLE) == 60);
  char byte;
  CHECK(recv(accepted.get(), &byte, 1, 0) == -1);
  CHECK(errno == EAGAIN);
  CHECK(from.to_string() == SocketAddress::local(client.get()).to_string());
}

TEST_CASE("the backlog is the system's") {
  CHECK(max_listen_backlog() >= 128);
}

TEST_CASE_FIXTURE(StreamTest, "what the kernel does not take is kept in order and sent later") {
  std::string sent;
  for (int i = 0; i < 2000; ++i) {
    std::string piece(1000, static_cast<char>('a' + i % 26));
    stream->write(piece);
    sent += piece;
  }
  CHECK(stream->unsent() > 0);
  std::string got;
  REQUIRE(run_until([&] {
    char chunk[65536];
    ssize_t n;
    while ((n = recv(peer.get(), chunk, sizeof chunk, 0)) > 0)
      got.append(chunk, static_cast<size_t>(n));
    return got.size() == sent.size();
  }));
  CHECK(got == sent);
  CHECK(stream->unsent() == 0);
  CHECK(drained >= 1);
}

TEST_CASE_FIXTURE(StreamTest, "while reading is off nothing is read") {
  stream->set_reading(false);
  REQUIRE(send(peer.get(), "abc", 3, 0) == 3);
  bool later = false;
  loop.post([&] { later = true; });
  REQUIRE(run_until([&] { return later; }));
  CHECK(received.empty());
  stream->set_reading(true);
  CHECK(run_until([&] { return received == "abc"; }));
}

TEST_CASE_FIXTURE(StreamTest, "the peer's end is told once") {
  peer.reset();
  CHECK(run_until([&] { return end_code == 0; }));
}

TEST_CASE_FIXTURE(StreamTest,
                  "a write to a peer that is gone ends the stream, even with reading off") {
  stream->set_reading(false);
  peer.reset();
  stream->write("into the void");
  stream->write("again");
  CHECK(run_until([&] { return end_code >= 0; }));
  CHECK(stream->unsent() == 0);
}

TEST_CASE_FIXTURE(StreamTest, "dropping a stream closes its socket at once") {
  stream.reset();
  char byte;
  CHECK(recv(peer.get(), &byte, 1, 0) == 0);
}

TEST_CASE("a descriptor limit that is too low names the need") {
  FdLimit limit{1024, 1024, 1024};
  CHECK_FALSE(fd_limit_too_low(limit, 8).has_value());
  auto line = fd_limit_too_low(limit, 100);
  REQUIRE(line.has_value());
  CHECK(*line ==
        "the limit of 1024 open files is too low for 100 workers, which may need 2064: raise the "
        "hard limit (ulimit -Hn 2064)");
}

TEST_CASE("the descriptor limit is raised to the hard one") {
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit low = before;
  low.rlim_cur = 256;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &low) == 0);
  FdLimit limit = raise_fd_limit();
  CHECK(limit.inherited == 256);
  CHECK(limit.now == before.rlim_max);
  rlimit raised{};
  getrlimit(RLIMIT_NOFILE, &raised);
  CHECK(raised.rlim_cur == before.rlim_max);
  setrlimit(RLIMIT_NOFILE, &before);
}

}  // namespace muster
