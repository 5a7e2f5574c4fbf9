// SPDX-License-Identifier: Apache-2.0
#include "store/session.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "store/fake_store.h"

namespace muster {

namespace {

const std::string kStop(1, '\0');
const std::string kCanceled(1, '\1');

}  // namespace

TEST_CASE("VALIDATE is silent and PING is echoed") {
  FakeStore store;
  auto& client = store.connect();
  CHECK(client.ask(request::validate()).empty());
  CHECK(client.ask(request::ping(4242)) == Bytes().u32(4242).text);
  CHECK(client.session->client_pid() == 4242);
  CHECK(client.ask(request::ping(4242 | kPingMark)) == Bytes().u32(4242 | kPingMark).text);
  CHECK(client.session->client_pid() == 4242);
}

TEST_CASE("a second VALIDATE closes") {
  FakeStore store;
  auto& client = store.greeted();
  CHECK_FALSE(client.feed(request::validate()));
  CHECK(client.session->why() == "a second VALIDATE");
}

TEST_CASE("strangers are refused at their first byte") {
  FakeStore store;
  for (std::string_view hello :
       {"GET / HTTP/1.1\r\n", "SSH-2.0-x", "\x16\x03\x01", "\r\n", "\xff"}) {
    auto& client = store.connect();
    CAPTURE(hello);
    CHECK_FALSE(client.feed(std::string(hello.substr(0, 1))));
    CHECK(client.session->why().starts_with("not a store client"));
  }
  auto& zeros = store.connect();
  CHECK_FALSE(zeros.feed(std::string(64, '\0')));
  CHECK(store.state.table.size() == 0);
}

TEST_CASE("every query answers as documented") {
  FakeStore store;
  auto& client = store.greeted();
  CHECK(client.ask(request::set("/k", "value")).empty());
  CHECK(client.ask(request::get("/k")) == Bytes().str("value").text);
  CHECK(client.ask(request::get("/missing")) == Bytes().str("").text);
  CHECK(client.ask(request::add("/n", 5)) == Bytes().i64(5).text);
  CHECK(client.ask(request::compare_set("/k", "value", "next")) == Bytes().str("next").text);
  CHECK(client.ask(request::compare_set("/none", "x", "y")) == Bytes().str("x").text);
  CHECK(client.ask(request::check({"/k", "/n"})) == Bytes().u8(0).text);
  CHECK(client.ask(request::check({"/k", "/none"})) == Bytes().u8(1).text);
  CHECK(client.ask(request::check({})) == Bytes().u8(0).text);
  CHECK(client.ask(request::append("/k", "+")).empty());
  CHECK(client.ask(Bytes().u8(11).u64(2).str("/m1").str("a").str("/m2").str("b")).empty());
  CHECK(client.ask(request::multi_get({"/m2", "/k", "/gone"})) ==
        Bytes().str("b").str("next+").str("").text);
  CHECK(client.ask(request::num_keys()) == Bytes().i64(4).text);
  CHECK(client.ask(request::erase("/m1")) == Bytes().i64(1).text);
  CHECK(client.ask(request::erase("/m1")) == Bytes().i64(0).text);
  CHECK(client.ask(request::queue_length("/q")) == Bytes().i64(0).text);
  CHECK(client.ask(request::queue_pop("/q")) == Bytes().i64(0).text);
  CHECK(client.ask(request::queue_push("/q", "item")).empty());
  CHECK(client.ask(request::check({"/q"})) == Bytes().u8(0).text);
  CHECK(client.ask(request::queue_pop("/q")) == Bytes().i64(1).str("item").text);
}

TEST_CASE("LIST_KEYS gives every value key and no queue") {
  FakeStore store;
  auto& client = store.greeted();
  client.ask(request::set("/a", "").add(request::set("init/", "2")));
  client.ask(request::queue_push("/q", "x"));
  std::string reply = client.ask(request::list_keys());
  REQUIRE(reply.size() > 8);
  CHECK(reply.substr(0, 8) == Bytes().i64(2).text);
  StringReader strings(std::string_view(reply).substr(8));
  std::set<std::string, std::less<>> keys;
  keys.emplace(strings.next());
  keys.emplace(strings.next());
  CHECK(keys == std::set<std::string, std::less<>>{"/a", "init/"});
}

TEST_CASE("a conversation cut at any byte has the same replies") {
  const std::string talk = request::validate()
                               .add(request::ping(1))
                               .add(request::set("/k", "value"))
                               .add(request::add("/n", 3))
                               .add(request::wait({"/k", "/n"}))
                               .add(request::multi_get({"/k", "/n"}))
                               .add(request::compare_set("/k", "value", "x"))
                               .add(request::get("/k"));
  FakeStore whole;
  auto& reference = whole.connect();
  const std::string expected = reference.ask(talk);
  for (size_t cut = 0; cut <= talk.size(); ++cut) {
    FakeStore store;
    auto& client = store.connect();
    client.feed(talk.substr(0, cut));
    client.feed(talk.substr(cut));
    CAPTURE(cut);
    REQUIRE(client.take() == expected);
    CHECK_FALSE(client.session->mid_request());
  }
  FakeStore store;
  auto& client = store.connect();
  for (char byte : talk)
    client.feed({&byte, 1});
  CHECK(client.take() == expected);
}

TEST_CASE("nothing of a MULTI_SET is applied before all of it came") {
  FakeStore store;
  auto& client = store.greeted();
  const std::string bytes = Bytes().u8(11).u64(2).str("/a").str("1").str("/b").str("2");
  client.feed(bytes.substr(0, bytes.size() - 1));
  CHECK(store.state.table.size() == 0);
  client.feed(bytes.substr(bytes.size() - 1));
  CHECK(store.state.table.size() == 2);
}

TEST_CASE("a WAIT is answered when the last key comes, by whatever stores it") {
  FakeStore store;
  auto& waiter = store.greeted();
  auto& other = store.greeted();
  const std::vector<std::pair<std::string, bool>> changes = {
      {request::set("/k", ""), true},
      {request::add("/k", 0), true},
      {request::append("/k", ""), true},
      {Bytes().u8(11).u64(1).str("/k").str("v"), true},
      {request::compare_set("/k", "", "v"), true},
      {request::compare_set("/k", "wrong", "v"), false},
      {request::erase("/k"), false},
      {request::get("/k"), false},
  };
  for (const auto& pair : changes) {
    const auto& [change, wakes] = pair;
    other.ask(request::erase("/k"));
    CHECK(waiter.ask(request::wait({"/k"})).empty());
    other.ask(change);
    CAPTURE(static_cast<int>(pair.first[0]));
    CHECK(waiter.take() == (wakes ? kStop : ""));
    CHECK(waiter.ask(request::cancel_wait()) == kCanceled);
  }
}

TEST_CASE("a WAIT for what is there, or for nothing, is answered at once") {
  FakeStore store;
  auto& client = store.greeted();
  client.ask(request::set("/k", "").add(request::queue_push("/q", "")));
  CHECK(client.ask(request::wait({"/k"})) == kStop);
  CHECK(client.ask(request::wait({"/q", "/k"})) == kStop);
  CHECK(client.ask(request::wait({})) == kStop);
}

TEST_CASE("CANCEL_WAIT is always answered and the key then wakes nobody") {
  FakeStore store;
  auto& waiter = store.greeted();
  auto& other = store.greeted();
  CHECK(waiter.ask(request::cancel_wait()) == kCanceled);
  waiter.ask(request::wait({"/k"}));
  CHECK(waiter.ask(request::cancel_wait()) == kCanceled);
  other.ask(request::set("/k", ""));
  CHECK(waiter.take().empty());
}

TEST_CASE("a peer that waits and then sets the key itself is answered") {
  FakeStore store;
  auto& client = store.greeted();
  CHECK(client.ask(request::wait({"/k"}).add(request::set("/k", ""))) == kStop);
}

TEST_CASE("a waiter that leaves is forgotten") {
  FakeStore store;
  auto& waiter = store.greeted();
  auto& other = store.greeted();
  waiter.ask(request::wait({"/k"}));
  store.disconnect(waiter);
  CHECK(store.state.waits.empty());
  CHECK(other.feed(request::set("/k", "")));
}

TEST_CASE("each pushed item wakes one waiter") {
  FakeStore store;
  auto& first = store.greeted();
  auto& second = store.greeted();
  auto& other = store.greeted();
  first.ask(request::wait({"/q"}));
  second.ask(request::wait({"/q"}));
  other.ask(request::queue_push("/q", "1"));
  CHECK(first.take() == kStop);
  CHECK(second.take().empty());
  other.ask(request::queue_push("/q", "2"));
  CHECK(second.take() == kStop);
}

TEST_CASE("a BARRIER holds until the last one comes and never holds again") {
  FakeStore store;
  auto& a = store.greeted();
  auto& b = store.greeted();
  auto& c = store.greeted();
  CHECK(a.ask(request::barrier("/b", 3)).empty());
  CHECK(b.ask(request::barrier("/b", 3)).empty());
  CHECK(store.state.waits.size() == 2);
  CHECK(c.ask(request::barrier("/b", 3)) == kStop);
  CHECK(a.take() == kStop);
  CHECK(b.take() == kStop);
  CHECK(a.ask(request::barrier("/b", 3)) == kStop);
  CHECK(*store.state.table.find("/b") == "4");
  CHECK(a.ask(request::barrier("/zero", 0)) == kStop);
}

TEST_CASE("a BARRIER below its size does not wake a WAIT on its key; SET and ADD release it") {
  FakeStore store;
  auto& waiter = store.greeted();
  auto& member = store.greeted();
  auto& other = store.greeted();
  waiter.ask(request::wait({"/b"}));
  member.ask(request::barrier("/b", 9));
  CHECK(waiter.take().empty());
  other.ask(request::add("/b", 0));
  CHECK(waiter.take() == kStop);
  CHECK(member.take() == kStop);
}

TEST_CASE("numbers are demanded where numbers are needed") {
  FakeStore store;
  store.greeted().ask(request::set("/k", "text"));
  CHECK_FALSE(store.greeted().feed(request::add("/k", 1)));
  CHECK_FALSE(store.greeted().feed(request::barrier("/k", 1)));
  CHECK(*store.state.table.find("/k") == "text");
}

TEST_CASE("a peer that does not read is not answered further, and goes on when it reads") {
  FakeStore store;
  auto& client = store.greeted();
  client.ask(request::set("/k", std::string(100'000, 'v')));
  client.full_at = 150'000;
  Bytes pipelined;
  for (int i = 0; i < 10; ++i)
    pipelined.add(request::get("/k"));
  client.feed(pipelined);
  CHECK(client.received.size() < 350'000);
  CHECK(client.session->stalled());
  size_t total = 0;
  while (client.session->stalled()) {
    total += client.take().size();
    REQUIRE(client.feed({}));
  }
  total += client.take().size();
  CHECK(total == 10 * 100'008);
}

TEST_CASE("one reply beyond all bounds closes") {
  FakeStore store;
  store.greeted().ask(request::set("/k", std::string(100'000, 'v')));
  auto& client = store.greeted();
  client.max_unread = 500'000;
  CHECK_FALSE(client.feed(
      request::multi_get({"/k", "/k", "/k", "/k", "/k", "/k", "/k", "/k", "/k", "/k"})));
  CHECK(client.received.size() < 700'000);
}

TEST_CASE("a request over a limit closes that connection alone") {
  FakeStore store;
  auto& good = store.greeted();
  auto& bad = store.greeted();
  CHECK_FALSE(bad.feed(Bytes().u8(1).u64(uint64_t{1} << 40).text));
  CHECK(bad.session->why().starts_with("a key length"));
  CHECK(good.ask(request::add("/n", 1)) == Bytes().i64(1).text);
}

TEST_CASE("keys are taken literally") {
  FakeStore store;
  auto& client = store.greeted();
  client.ask(request::add("init/", 1));
  client.ask(request::set("", "empty"));
  CHECK(client.ask(request::get("init/")) == Bytes().str("1").text);
  CHECK(client.ask(request::get("/init/")) == Bytes().str("").text);
  CHECK(client.ask(request::get("")) == Bytes().str("empty").text);
}

}  // namespace muster
