// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/http_place.h"

#include <doctest/doctest.h>

namespace muster {
namespace {

void check_place(const char* text, const char* address, int port) {
  CAPTURE(text);
  Result<HttpPlace> place = parse_http_place(text);
  REQUIRE(place);
  CHECK(place->on);
  CHECK(place->asked);
  CHECK(place->address == address);
  CHECK(place->port == port);
}

TEST_CASE("a port alone stays on the loopback address") {
  check_place("8080", "127.0.0.1", 8080);
  check_place("localhost:8080", "127.0.0.1", 8080);
  check_place("127.0.0.1", "127.0.0.1", 0);
}

TEST_CASE("all addresses have to be asked for") {
  check_place(":8080", "::", 8080);
  check_place("*:8080", "::", 8080);
  check_place("*", "::", 0);
  check_place("0.0.0.0:80", "0.0.0.0", 80);
  check_place("[::1]:80", "::1", 80);
}

TEST_CASE("off turns it off") {
  Result<HttpPlace> place = parse_http_place("off");
  REQUIRE(place);
  CHECK(!place->on);
}

TEST_CASE("what is no place to listen at is refused with a reason") {
  for (const char* text : {"", "node-a:80", "127.0.0.1:0x1", "127.0.0.1:70000", ":", "80:80:80",
                           "on", "http://127.0.0.1:80"}) {
    CAPTURE(text);
    Result<HttpPlace> place = parse_http_place(text);
    REQUIRE(!place);
    CHECK(!place.error().message.empty());
  }
}

}  // namespace
}  // namespace muster
