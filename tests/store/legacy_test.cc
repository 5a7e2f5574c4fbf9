// SPDX-License-Identifier: Apache-2.0
#include "store/legacy.h"

#include <doctest/doctest.h>

#include "store/fake_store.h"

namespace muster {

TEST_CASE("current and 1.13 clients are told apart by five bytes") {
  CHECK(recognise("") == Greeting::kNeedMore);
  const std::string magic = request::validate();
  for (size_t size = 1; size < magic.size(); ++size)
    CHECK(recognise(magic.substr(0, size)) == Greeting::kNeedMore);
  CHECK(recognise(magic) == Greeting::kCurrent);
  CHECK(recognise(Bytes().u8(0).str("/key").text) == Greeting::kLegacy);
  CHECK(recognise(Bytes().u8(3).text) == Greeting::kLegacy);
  CHECK(recognise(Bytes().u8(8).text) == Greeting::kLegacy);
  CHECK(recognise(Bytes().u8(9).text) == Greeting::kUnknown);
  CHECK(recognise(Bytes().u8(0).u32(0).text) == Greeting::kUnknown);
}

TEST_CASE("a 1.13 client and a current one share the store") {
  FakeStore store;
  auto& old = store.connect();
  auto& current = store.greeted();
  CHECK(old.ask(Bytes().u8(3).str("init/").i64(1)) == Bytes().i64(1).text);  // ADD
  CHECK(old.session->legacy());
  CHECK(current.ask(request::add("init/", 1)) == Bytes().i64(2).text);
  CHECK(old.ask(Bytes().u8(5).u64(1).str("/k")).empty());  // WAIT
  current.ask(request::set("/k", "v"));
  CHECK(old.take() == Bytes().u8(0).text);
  CHECK(old.ask(Bytes().u8(2).str("/k")) == Bytes().str("v").text);  // GET
  CHECK(old.ask(Bytes().u8(1).str("/k").str("v").str("w")) ==
        Bytes().str("w").text);                                          // COMPARE_SET
  CHECK(old.ask(Bytes().u8(4).u64(1).str("/k")) == Bytes().u8(0).text);  // CHECK
  CHECK(old.ask(Bytes().u8(6)) == Bytes().i64(2).text);                  // GETNUMKEYS
  CHECK(old.ask(Bytes().u8(8).str("/k")) == Bytes().i64(1).text);        // DELETE_KEY
  CHECK(old.ask(Bytes().u8(0).str("/k").str("back")).empty());           // SET
  CHECK(current.ask(request::get("/k")) == Bytes().str("back").text);
  CHECK_FALSE(old.feed(Bytes().u8(13).u32(1).text));  // no PING in 1.13
}

TEST_CASE("a 1.13 client whose first query is SET, cut at any byte, is recognised") {
  const std::string bytes = Bytes().u8(0).str("/key").str("value");
  for (size_t cut = 1; cut < bytes.size(); ++cut) {
    FakeStore store;
    auto& client = store.connect();
    REQUIRE(client.feed(bytes.substr(0, cut)));
    REQUIRE(client.feed(bytes.substr(cut)));
    CHECK(*store.state.table.find("/key") == "value");
  }
}

TEST_CASE("watchers are told of what is created, updated and deleted, by any kind of client") {
  FakeStore store;
  auto& watcher = store.connect();
  auto& current = store.greeted();
  CHECK(watcher.ask(Bytes().u8(7).str("/k")) == Bytes().u8(3).text);
  current.ask(request::set("/k", "one"));
  CHECK(watcher.take() == Bytes().u8(1).str("/k").str("").str("one").text);
  current.ask(request::append("/k", "!"));
  CHECK(watcher.take() == Bytes().u8(0).str("/k").str("one").str("one!").text);
  current.ask(request::compare_set("/k", "no", "two"));
  CHECK(watcher.take().empty());
  current.ask(request::compare_set("/k", "one!", "2"));
  CHECK(watcher.take() == Bytes().u8(0).str("/k").str("one!").str("2").text);
  current.ask(request::add("/k", 1));
  CHECK(watcher.take() == Bytes().u8(0).str("/k").str("2").str("3").text);
  current.ask(request::set("/unwatched", ""));
  CHECK(watcher.take().empty());
  current.ask(request::erase("/k").add(request::erase("/k")));
  CHECK(watcher.take() == Bytes().u8(2).str("/k").str("3").str("").text);
}

TEST_CASE("watching twice tells once, and leaving ends it") {
  FakeStore store;
  auto& watcher = store.connect();
  auto& current = store.greeted();
  CHECK(watcher.ask(Bytes().u8(7).str("/k").u8(7).str("/k")) == Bytes().u8(3).u8(3).text);
  current.ask(request::set("/k", "v"));
  CHECK(watcher.take() == Bytes().u8(1).str("/k").str("").str("v").text);
  store.disconnect(watcher);
  CHECK(store.state.watches.empty());
  CHECK(current.feed(request::set("/k", "w")));
}

TEST_CASE("who watches a key and changes it on the same connection gets both in order") {
  FakeStore store;
  auto& client = store.connect();
  client.ask(Bytes().u8(7).str("/k"));
  CHECK(client.ask(Bytes().u8(3).str("/k").i64(1).u8(6)) ==
        Bytes().i64(1).u8(1).str("/k").str("").str("1").i64(1).text);
}

TEST_CASE("a client that watches too many keys is refused") {
  Watches watches;
  for (size_t i = 0; i < Watches::kMaxPerClient; ++i)
    REQUIRE(watches.watch(1, std::to_string(i) + "/"));
  CHECK_FALSE(watches.watch(1, "/one more"));
  CHECK(watches.watch(1, "0/"));
  CHECK(watches.watch(2, "/one more"));
}

}  // namespace muster
