// SPDX-License-Identifier: Apache-2.0
#include "loop/interfaces.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "loop/unique_fd.h"

namespace muster {

namespace {

SocketAddress literal(const std::string& text, int port = 0) {
  auto address = SocketAddress::parse(text, port);
  REQUIRE(address.has_value());
  return *address;
}

}  // namespace

TEST_CASE("the machine's addresses can all be bound to, and loopback is one of them") {
  const std::vector<SocketAddress> ours = local_addresses();
  CHECK(std::ranges::count(ours, literal("127.0.0.1")) == 1);
  for (const SocketAddress& address : ours) {
    CAPTURE(address.to_string());
    CHECK(address.port() == 0);
    UniqueFd probe(socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(probe);
    // An address that is still being checked for duplicates cannot be bound to yet.
    const bool bound = bind(probe.get(), address.raw(), address.size()) == 0;
    CHECK((bound || errno == EADDRNOTAVAIL));
    CHECK(is_local(address, ours));
  }
}

TEST_CASE("others are told addresses of ours, loopback only if there is nothing else") {
  const std::vector<SocketAddress> ours = local_addresses();
  const std::vector<SocketAddress> told = reachable_addresses();
  REQUIRE_FALSE(told.empty());
  const bool only_loopback = told[0].is_loopback();
  for (const SocketAddress& address : told) {
    CAPTURE(address.to_string());
    CHECK(std::ranges::count(ours, address) == 1);
    CHECK(std::ranges::count(told, address) == 1);
    CHECK(address.is_loopback() == only_loopback);
    CHECK_FALSE(address.is_link_local());
  }
}

TEST_CASE("local is what ends on this machine") {
  const std::vector<SocketAddress> ours = {literal("10.1.2.3"), literal("2001:db8::7")};
  CHECK(is_local(literal("10.1.2.3", 29500), ours));
  CHECK(is_local(literal("::ffff:10.1.2.3"), ours));
  CHECK(is_local(literal("2001:db8::7"), ours));
  CHECK(is_local(literal("127.0.1.1"), ours));
  CHECK(is_local(literal("::1"), ours));
  CHECK(is_local(literal("0.0.0.0"), ours));
  CHECK_FALSE(is_local(literal("10.1.2.4"), ours));
  CHECK_FALSE(is_local(literal("2001:db8::8"), ours));
}

TEST_CASE("an address knows its host, its port and its kind") {
  CHECK(literal("127.0.0.1", 80).host() == "127.0.0.1");
  CHECK(literal("2001:DB8:0::7", 80).host() == "2001:db8::7");
  CHECK(literal("fe80::1%lo", 80).host() == "fe80::1%lo");
  CHECK(literal("fe80::1%lo", 80).to_string() == "[fe80::1%lo]:80");
  CHECK(literal("::ffff:10.0.0.1", 5) == literal("10.0.0.1", 5));
  CHECK(literal("::ffff:10.0.0.1").family() == AF_INET);
  CHECK(literal("10.0.0.1", 5).with_port(6) == literal("10.0.0.1", 6));
  CHECK(literal("10.0.0.1", 5).same_host(literal("10.0.0.1", 6)));
  CHECK_FALSE(literal("10.0.0.1", 5) == literal("10.0.0.1", 6));
  CHECK_FALSE(literal("fe80::1%lo").same_host(literal("fe80::1")));
  CHECK(literal("127.200.0.1").is_loopback());
  CHECK(literal("::ffff:127.0.0.1").is_loopback());
  CHECK_FALSE(literal("128.0.0.1").is_loopback());
  CHECK(literal("::").is_unspecified());
  CHECK(literal("169.254.1.1").is_link_local());
  CHECK(literal("fe80::1%lo").is_link_local());
  CHECK(SocketAddress().host().empty());
  CHECK_FALSE(SocketAddress().is_loopback());
}

}  // namespace muster
