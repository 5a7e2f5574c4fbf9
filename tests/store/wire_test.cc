// SPDX-License-Identifier: Apache-2.0
#include "store/wire.h"

#include <doctest/doctest.h>

#include <vector>

#include "store/bytes.h"

namespace muster {

namespace {

Decoded decode_once(const std::string& bytes, Request* request, WireLimits limits = {},
                    Dialect dialect = Dialect::kCurrent) {
  RequestDecoder decoder(limits);
  decoder.set_dialect(dialect);
  return decoder.decode(bytes, request);
}

std::string why(const std::string& bytes, WireLimits limits = {}) {
  RequestDecoder decoder(limits);
  Request request;
  CHECK(decoder.decode(bytes, &request) == Decoded::kMalformed);
  return decoder.why();
}

std::vector<std::string> every_request() {
  return {request::validate(),
          request::set("/k", "value"),
          request::compare_set("/k", "", "desired"),
          request::get("/k"),
          request::add("/k", -5),
          request::check({"/a", "/bb"}),
          request::wait({"/a", "", "/ccc"}),
          request::num_keys(),
          request::erase("/k"),
          request::append("/k", "more"),
          request::multi_get({"/a", "/b"}),
          Bytes().u8(11).u64(2).str("/a").str("1").str("/b").str(""),
          request::cancel_wait(),
          request::ping(99),
          request::queue_push("/q", "item"),
          request::queue_pop("/q"),
          request::queue_length("/q"),
          request::list_keys(),
          request::barrier("/b", 4)};
}

}  // namespace

TEST_CASE("every query decodes whole, with its size") {
  uint8_t number = 0;
  for (const std::string& bytes : every_request()) {
    Request request;
    CAPTURE(static_cast<int>(number));
    REQUIRE(decode_once(bytes, &request) == Decoded::kRequest);
    CHECK(static_cast<uint8_t>(request.query) == number);
    CHECK(request.size == bytes.size());
    ++number;
  }
  CHECK(number == 19);
}

TEST_CASE("a request cut at any byte needs more, and decodes once the rest is there") {
  for (const std::string& bytes : every_request()) {
    for (size_t cut = 0; cut < bytes.size(); ++cut) {
      RequestDecoder decoder{WireLimits()};
      Request request;
      CAPTURE(cut);
      REQUIRE(decoder.decode(std::string_view(bytes).substr(0, cut), &request) ==
              Decoded::kNeedMore);
      CHECK(decoder.needed() > cut);
      CHECK(decoder.needed() <= bytes.size());
      REQUIRE(decoder.decode(bytes, &request) == Decoded::kRequest);
      CHECK(request.size == bytes.size());
    }
  }
}

TEST_CASE("a request that comes byte by byte in moving memory decodes the same") {
  for (const std::string& bytes : every_request()) {
    RequestDecoder decoder{WireLimits()};
    Request request;
    for (size_t size = 1; size < bytes.size(); ++size) {
      std::string moved = bytes.substr(0, size);
      REQUIRE(decoder.decode(moved, &request) == Decoded::kNeedMore);
    }
    REQUIRE(decoder.decode(bytes, &request) == Decoded::kRequest);
    CHECK(static_cast<uint8_t>(request.query) == static_cast<uint8_t>(bytes[0]));
  }
}

TEST_CASE("the arguments are what was sent") {
  Request request;
  const std::string compare = request::compare_set("/k", "old", "new");
  REQUIRE(decode_once(compare, &request) == Decoded::kRequest);
  StringReader strings = request.strings();
  CHECK(strings.next() == "/k");
  CHECK(strings.next() == "old");
  CHECK(strings.next() == "new");
  REQUIRE(decode_once(request::add("/n", INT64_MIN), &request) == Decoded::kRequest);
  CHECK(request.number == INT64_MIN);
  REQUIRE(decode_once(request::ping(0xFFFFFFFF), &request) == Decoded::kRequest);
  CHECK(request.number == 0xFFFFFFFF);
  REQUIRE(decode_once(request::multi_get({"/a", "/b", "/c"}), &request) == Decoded::kRequest);
  CHECK(request.count == 3);
}

TEST_CASE("the decoder starts afresh after each request") {
  std::string two = request::set("/a", "1").add(request::get("/b"));
  RequestDecoder decoder{WireLimits()};
  Request request;
  REQUIRE(decoder.decode(two, &request) == Decoded::kRequest);
  CHECK(request.query == Query::kSet);
  REQUIRE(decoder.decode(std::string_view(two).substr(request.size), &request) ==
          Decoded::kRequest);
  CHECK(request.query == Query::kGet);
  CHECK(request.strings().next() == "/b");
}

TEST_CASE("a number that is no query is malformed") {
  for (int number = 19; number < 256; ++number)
    CHECK(why(Bytes().u8(static_cast<uint8_t>(number))) ==
          "unknown query " + std::to_string(number));
}

TEST_CASE("limits are judged by the announced length, before any byte of it came") {
  WireLimits limits{8, 16, 3, 64};
  CHECK(why(Bytes().u8(3).u64(9), limits) == "a key length of 9 (at most 8)");
  CHECK(why(Bytes().u8(3).u64(UINT64_MAX), limits) ==
        "a key length of 18446744073709551615 (at most 8)");
  CHECK(why(Bytes().u8(1).str("/k").u64(17), limits) == "a value length of 17 (at most 16)");
  CHECK(why(Bytes().u8(6).u64(4), limits) == "a number of keys of 4 (at most 3)");
  Bytes large = Bytes().u8(11).u64(3);
  for (int i = 0; i < 2; ++i)
    large.str("12345678").str("1234567890");
  CHECK(why(large, limits) == "a request length of 77 (at most 64)");
}

TEST_CASE("what is exactly at the limit passes") {
  WireLimits limits{8, 16, 3, 1000};
  Request request;
  CHECK(decode_once(request::set("12345678", "1234567890123456"), &request, limits) ==
        Decoded::kRequest);
  CHECK(decode_once(request::wait({"/a", "/b", "/c"}), &request, limits) == Decoded::kRequest);
}

TEST_CASE("the default limits are at least those of PyTorch's server") {
  Request request;
  CHECK(decode_once(request::set(std::string(8192, 'k'), std::string(size_t{8} << 20, 'v')),
                    &request) == Decoded::kRequest);
  CHECK(decode_once(Bytes().u8(6).u64(131072), &request) == Decoded::kNeedMore);
}

TEST_CASE("1.13 numbers mean other queries with the same arguments") {
  const std::vector<std::pair<Query, std::string>> legacy = {
      {Query::kSet, Bytes().u8(0).str("/k").str("v")},
      {Query::kCompareSet, Bytes().u8(1).str("/k").str("a").str("b")},
      {Query::kGet, Bytes().u8(2).str("/k")},
      {Query::kAdd, Bytes().u8(3).str("/k").i64(1)},
      {Query::kCheck, Bytes().u8(4).u64(1).str("/k")},
      {Query::kWait, Bytes().u8(5).u64(1).str("/k")},
      {Query::kGetNumKeys, Bytes().u8(6)},
      {Query::kWatchKey, Bytes().u8(7).str("/k")},
      {Query::kDeleteKey, Bytes().u8(8).str("/k")},
  };
  for (const auto& [query, bytes] : legacy) {
    Request request;
    REQUIRE(decode_once(bytes, &request, {}, Dialect::kLegacy) == Decoded::kRequest);
    CHECK(request.query == query);
    CHECK(request.size == bytes.size());
  }
  Request request;
  CHECK(decode_once(Bytes().u8(9), &request, {}, Dialect::kLegacy) == Decoded::kMalformed);
}

}  // namespace muster
