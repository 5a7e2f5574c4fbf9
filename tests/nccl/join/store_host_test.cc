// SPDX-License-Identifier: Apache-2.0
#include "nccl/join/store_host.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "loop/unique_fd.h"
#include "store/bytes.h"
#include "store/client.h"

namespace muster::comm::detail {

namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
using Keys = std::vector<std::string>;

struct StoreHostTest {
  std::unique_ptr<StoreHost> host = make({});

  static std::unique_ptr<StoreHost> make(StoreHost::Limits limits) {
    auto host = StoreHost::listen(0, limits);
    REQUIRE(host.has_value());
    return std::move(*host);
  }

  std::unique_ptr<StoreClient> connect(milliseconds timeout = milliseconds(20'000)) const {
    auto client =
        StoreClient::connect({.host = "127.0.0.1", .port = host->port(), .timeout = timeout});
    if (!client) MESSAGE(client.error().message);
    REQUIRE(client.has_value());
    return std::move(*client);
  }

  UniqueFd raw() const {
    UniqueFd fd = socket();
    const SocketAddress there = *SocketAddress::parse("127.0.0.1", host->port());
    REQUIRE(::connect(fd.get(), there.raw(), there.size()) == 0);
    return fd;
  }
  static UniqueFd socket() {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const timeval limit{20, 0};
    REQUIRE(setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
    return fd;
  }
};

void send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

// Within the time that raw() gives.
bool closed(int fd) {
  char bytes[4096];
  ssize_t got;
  while ((got = recv(fd, bytes, sizeof bytes, 0)) > 0) {
  }
  return got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

std::string read_exactly(int fd, size_t size) {
  std::string bytes(size, '\0');
  return recv(fd, bytes.data(), size, MSG_WAITALL) == static_cast<ssize_t>(size) ? bytes : "";
}

}  // namespace

TEST_CASE_FIXTURE(StoreHostTest, "a client's calls do what they say") {
  auto store = connect();
  CHECK(store->set("k", "v").has_value());
  CHECK(*store->get("k") == "v");
  CHECK(*store->add("n", 5) == 5);
  CHECK(*store->compare_set("c", "", "1") == "1");
  CHECK(store->append("k", "w").has_value());
  CHECK(*store->multi_get(Keys{"n", "k"}) == Keys{"5", "vw"});
  CHECK(store->wait(Keys{"never"}, milliseconds(20)).error().code == ETIMEDOUT);
  CHECK(store->queue_push("q", "x").has_value());
  CHECK(*store->queue_pop("q", true) == "x");
  CHECK(store->barrier("b", 1, milliseconds(1'000)).has_value());
  CHECK(*store->num_keys() == 4);
  CHECK(*store->erase("k"));
}

TEST_CASE_FIXTURE(StoreHostTest, "many clients wait and are woken") {
  constexpr int kClients = 32;
  std::atomic<int> arrived = 0;
  std::vector<std::thread> clients;
  clients.reserve(kClients);
  for (int i = 0; i < kClients; ++i)
    clients.emplace_back([&] {
      auto store = connect();
      ++arrived;
      CHECK(store->barrier("b", kClients, milliseconds(20'000)).has_value());
      CHECK(arrived == kClients);
      CHECK(*store->get("word") == "go");
    });
  auto store = connect();
  CHECK(store->set("word", "go").has_value());
  for (std::thread& client : clients)
    client.join();
}

TEST_CASE_FIXTURE(StoreHostTest, "a client of PyTorch 1.13 is served: no greeting, other numbers") {
  const UniqueFd fd = raw();
  // SET /k = v, GET /k as 1.13 numbers them.
  send_all(fd.get(), Bytes().u8(0).str("/k").str("v").u8(2).str("/k").text);
  CHECK(read_exactly(fd.get(), 9) == Bytes().str("v").text);
}

TEST_CASE_FIXTURE(StoreHostTest, "requests in any pieces, and thousands in one, are answered") {
  const UniqueFd fd = raw();
  const std::string hello = request::validate().add(request::ping(7)).text;
  for (char byte : hello)
    send_all(fd.get(), {&byte, 1});
  CHECK(read_exactly(fd.get(), 4) == Bytes().u32(7).text);
  std::string batch;
  constexpr int kRequests = 5'000;
  for (int i = 0; i < kRequests; ++i)
    batch += request::num_keys().text;
  std::thread writer([&] { send_all(fd.get(), batch); });
  CHECK(read_exactly(fd.get(), kRequests * sizeof(int64_t)).size() == kRequests * sizeof(int64_t));
  writer.join();
}

TEST_CASE_FIXTURE(StoreHostTest, "a bad peer costs its own connection only") {
  auto store = connect();
  const UniqueFd web = raw();
  send_all(web.get(), "GET / HTTP/1.1\r\n\r\n");
  CHECK(closed(web.get()));
  const UniqueFd liar = raw();
  send_all(liar.get(), request::validate().u8(1).u64(UINT64_MAX).text);
  CHECK(closed(liar.get()));
  {
    const UniqueFd half = raw();
    send_all(half.get(), request::validate().u8(1).text);
  }
  CHECK(store->set("k", "v").has_value());
  CHECK(*store->get("k") == "v");
}

TEST_CASE_FIXTURE(StoreHostTest, "a peer that does not read is paused, not buffered for") {
  StoreHost::Limits limits;
  limits.pause_at = 64 << 10;
  host = make(limits);
  auto store = connect();
  REQUIRE(store->set("big", std::string(1 << 20, 'x')).has_value());
  REQUIRE(store->get("big").has_value());  // it is there
  const UniqueFd fd = raw();
  std::string gets = request::validate().text;
  constexpr int kGets = 64;
  for (int i = 0; i < kGets; ++i)
    gets += request::get("/big").text;
  send_all(fd.get(), gets);
  CHECK(*store->add("n", 1) == 1);  // the others go on
  for (int i = 0; i < kGets; ++i)
    CHECK(read_exactly(fd.get(), 8 + (1 << 20)).size() == 8 + (1 << 20));
}

TEST_CASE_FIXTURE(StoreHostTest, "a watcher that does not read its notices is closed") {
  StoreHost::Limits limits;
  limits.max_unsent = 1 << 20;
  host = make(limits);
  const UniqueFd watcher = raw();
  send_all(watcher.get(), Bytes().u8(7).str("/k").text);  // 1.13's WATCH_KEY
  CHECK(read_exactly(watcher.get(), 1).size() == 1);
  auto store = connect();
  for (int i = 0; i < 32; ++i)
    REQUIRE(store->set("k", std::string(1 << 20, 'x')).has_value());
  CHECK(closed(watcher.get()));
  CHECK(*store->add("n", 1) == 1);
}

TEST_CASE_FIXTURE(StoreHostTest, "beyond the limit of connections a newcomer waits for a place") {
  StoreHost::Limits limits;
  limits.connections = 2;
  host = make(limits);
  auto first = connect();
  auto second = connect();
  auto third = StoreClient::connect(
      {.host = "127.0.0.1", .port = host->port(), .timeout = milliseconds(200)});
  CHECK_FALSE(third.has_value());
  first.reset();
  CHECK(*connect()->add("n", 1) == 1);
}

TEST_CASE_FIXTURE(StoreHostTest, "who comes while there are no descriptors comes in later") {
  auto store = connect();  // it stays
  const UniqueFd fd = socket();
  const SocketAddress there = *SocketAddress::parse("127.0.0.1", host->port());
  const std::string hello = request::validate().add(request::ping(7)).text;
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit none{1, before.rlim_max};  // poll() wants one for each that it looks at
  // Nothing is checked meanwhile, since a sanitizer would open something for that.
  setrlimit(RLIMIT_NOFILE, &none);
  const int connected = ::connect(fd.get(), there.raw(), there.size());
  send_all(fd.get(), hello);
  pollfd reply{fd.get(), POLLIN, 0};
  const int replies = poll(&reply, 1, 300);
  setrlimit(RLIMIT_NOFILE, &before);
  REQUIRE(connected == 0);
  REQUIRE(replies == 0);
  CHECK(read_exactly(fd.get(), 4) == Bytes().u32(7).text);  // though nobody has gone
}

TEST_CASE_FIXTURE(StoreHostTest, "it is over when the key is there or nobody else is") {
  auto own = connect();
  host->add_own(own->local_address());
  auto other = connect();
  CHECK_FALSE(host->wait_until_over("end", Clock::now() + milliseconds(50)));
  SUBCASE("the key") {
    std::thread last([&] { CHECK(other->set("end", "").has_value()); });
    CHECK(host->wait_until_over("end", Clock::now() + milliseconds(20'000)));
    last.join();
  }
  SUBCASE("nobody") {
    std::thread last([&] { other.reset(); });
    CHECK(host->wait_until_over("end", Clock::now() + milliseconds(20'000)));
    last.join();
  }
}

TEST_CASE_FIXTURE(StoreHostTest, "its end closes all connections and frees the port") {
  auto store = connect();
  const int port = host->port();
  std::thread waiter(
      [&] { CHECK(store->wait(Keys{"k"}, milliseconds(20'000)).error().code != ETIMEDOUT); });
  host.reset();
  waiter.join();
  auto again = StoreHost::listen(port);
  CHECK(again.has_value());
  auto busy = StoreHost::listen(port);
  REQUIRE_FALSE(busy.has_value());
  CHECK(busy.error().message == "store: listen on [::]:" + std::to_string(port) +
                                    ": Address already in use; another program uses this port");
}

}  // namespace muster::comm::detail
