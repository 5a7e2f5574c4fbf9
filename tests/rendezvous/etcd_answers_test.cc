// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/etcd_answers.h"

#include <doctest/doctest.h>

#include <cerrno>

#include "supervisor/rendezvous/base64.h"
#include "supervisor/rendezvous/office_holder.h"

namespace muster {

namespace {

HttpResponse answer(int status, std::string body, HttpHeaders headers = {}) {
  return {status, std::move(headers), std::move(body)};
}

std::string nested(const char* open, int depth) {
  std::string text;
  for (int i = 0; i < depth; ++i)
    text += open;
  return text;
}

}  // namespace

TEST_CASE("base64 goes both ways") {
  const std::pair<const char*, const char*> known[] = {{"", ""},
                                                       {"f", "Zg=="},
                                                       {"fo", "Zm8="},
                                                       {"foo", "Zm9v"},
                                                       {"foob", "Zm9vYg=="},
                                                       {"fooba", "Zm9vYmE="},
                                                       {"foobar", "Zm9vYmFy"}};
  for (auto [plain, coded] : known) {
    CHECK(base64_encode(plain) == coded);
    CHECK(base64_decode(coded) == plain);
  }
  std::string all;
  for (int i = 0; i < 256; ++i)
    all += static_cast<char>(i);
  CHECK(base64_decode(base64_encode(all)) == all);
}

TEST_CASE("what is not base64 is refused") {
  for (const char* text : {"Z", "Zg", "Zg=", "Zh==", "Zm9=", "====", "Z===", "Zg==Zg==", "Zm 9",
                           "Zm9v\n", "Zm-_", "=Zm8"})
    CHECK_FALSE(base64_decode(text).has_value());
}

TEST_CASE("answers of the v2 API are understood") {
  const std::string node = R"({"action":"get","node":{"key":"/a","value":"v","modifiedIndex":5}})";
  auto view = v2_view(answer(200, node, {{"x-etcd-index", "12"}}));
  REQUIRE(view.has_value());
  CHECK(view->value == "v");
  CHECK(view->index == 12);
  auto vacant = v2_view(answer(404, R"({"errorCode":100,"message":"Key not found","index":7})"));
  REQUIRE(vacant.has_value());
  CHECK(vacant->value == "");
  CHECK(vacant->index == 7);
  CHECK(*v2_done(answer(201, node)));
  CHECK_FALSE(*v2_done(answer(412, R"({"errorCode":105,"message":"Key already exists"})")));
  CHECK_FALSE(*v2_done(answer(412, R"({"errorCode":101,"message":"Compare failed"})")));
  CHECK_FALSE(*v2_done(answer(404, R"({"errorCode":100,"message":"Key not found"})")));
}

TEST_CASE("answers of the v3 API are understood") {
  auto view = v3_view(answer(200, R"({"header":{"revision":"9"},"kvs":[{"value":"aGk=",
                                      "lease":"9223372036854775807"}],"count":"1"})"));
  REQUIRE(view.has_value());
  CHECK(view->entry->value == "hi");
  CHECK(view->entry->lease == INT64_MAX);
  CHECK(view->revision == 9);
  CHECK_FALSE(v3_view(answer(200, R"({"header":{"revision":"9"}})"))->entry.has_value());
  CHECK(v3_lease(answer(200, R"({"ID":"5","TTL":"6"})"))->seconds == 6);
  CHECK(v3_kept_lease(answer(200, R"({"result":{"ID":"5"}})"))->seconds == 0);
  CHECK(*v3_done(answer(200, R"({"header":{},"succeeded":true})")));
  CHECK_FALSE(*v3_done(answer(200, R"({"header":{}})")));
  CHECK_FALSE(*v3_changed(R"({"result":{"header":{},"created":true}})"));
  CHECK(*v3_changed(R"({"result":{"header":{},"events":[{"type":"DELETE"}]}})"));
  CHECK(*v3_changed(R"({"result":{"canceled":true,"compact_revision":"7"}})"));
}

TEST_CASE("an answer that is not etcd's is an error, whatever it is") {
  const std::string bodies[] = {"",
                                "<html>",
                                "null",
                                "[]",
                                "{}",
                                R"({"node":5})",
                                R"({"node":{"value":{}}})",
                                R"({"header":{"revision":"x"}})",
                                R"({"header":{"revision":"1"},"kvs":[{}]})",
                                R"({"header":{"revision":"1"},"kvs":[{"value":"*"}]})",
                                R"({"header":{"revision":1e99},"kvs":5})",
                                R"({"ID":"99999999999999999999","TTL":"5"})",
                                R"({"ID":"5"})",
                                R"({"result":[]})",
                                nested("[", 10'000),
                                nested("{\"a\":", 10'000)};
  for (const std::string& body : bodies) {
    INFO(body.substr(0, 60));
    for (int status : {200, 500}) {
      CHECK_FALSE(v2_view(answer(status, body)).has_value());
      CHECK_FALSE(v2_done(answer(status, body == R"({"node":{"value":{}}})" ? "" : body)));
      CHECK_FALSE(v3_view(answer(status, body)).has_value());
      CHECK_FALSE(v3_lease(answer(status, body)).has_value());
      CHECK_FALSE(v3_kept_lease(answer(status, body)).has_value());
      if (body.find("header") == std::string::npos)
        CHECK_FALSE(v3_done(answer(status, body)).has_value());
    }
    CHECK_FALSE(v3_changed(body).has_value());
  }
}

TEST_CASE("an error says what etcd said, and whether trying again is of use") {
  Error denied = v3_view(answer(403, R"({"error":"permission denied"})")).error();
  CHECK(denied.code == EACCES);
  CHECK(denied.message == "access denied (permission denied)");
  CHECK(v2_view(answer(404, "404 page not found\n")).error().code == ENOTSUP);
  CHECK(v3_view(answer(404, "404 page not found\n")).error().code == ENOTSUP);
  Error busy = v3_done(answer(503, R"({"message":"etcdserver: no leader\u001b[31m"})")).error();
  CHECK(busy.code == EPROTO);
  CHECK(busy.message == "etcdserver: no leader?[31m (status 503)");
  CHECK(v2_done(answer(500, "")).error().message == "status 500");
  const std::string long_text(5000, 'x');
  CHECK(v3_done(answer(500, "{\"message\":\"" + long_text + "\"}")).error().message.size() < 300);
}

TEST_CASE("a holder is written and read again") {
  OfficeHolder holder{"run \"1\"", "agent", "host\xff", {"10.0.0.1", "fe80::1%lo"}, 29400, 3};
  auto read = parse_holder(holder_text(holder));
  REQUIRE(read.has_value());
  CHECK(read->run_id == holder.run_id);
  CHECK(read->agent_id == "agent");
  CHECK(read->addresses == holder.addresses);
  CHECK(read->port == 29400);
  CHECK(read->term == 3);
}

TEST_CASE("a holder that cannot be one is refused") {
  const OfficeHolder good{"run", "agent", "host", {"10.0.0.1"}, 29400, 0};
  REQUIRE(parse_holder(holder_text(good)).has_value());
  auto refused = [&](auto change) {
    OfficeHolder bad = good;
    change(bad);
    return !parse_holder(holder_text(bad)).has_value();
  };
  CHECK(refused([](OfficeHolder& bad) { bad.port = 0; }));
  CHECK(refused([](OfficeHolder& bad) { bad.port = 65536; }));
  CHECK(refused([](OfficeHolder& bad) { bad.term = -1; }));
  CHECK(refused([](OfficeHolder& bad) { bad.addresses.clear(); }));
  CHECK(refused([](OfficeHolder& bad) { bad.addresses = {"a-name"}; }));
  CHECK(refused([](OfficeHolder& bad) {
    bad.addresses = std::vector<std::string>(kMaxHolderAddresses + 1, "10.0.0.1");
  }));
  CHECK(refused([](OfficeHolder& bad) { bad.host = std::string(kMaxHolderText, 'x'); }));
  for (const char* text : {"", "5", "[]", "{}", R"({"kind":"muster coordinator"})"})
    CHECK_FALSE(parse_holder(text).has_value());
}

}  // namespace muster
