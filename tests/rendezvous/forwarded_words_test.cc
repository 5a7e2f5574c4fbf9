// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/forwarded_words.h"

#include <doctest/doctest.h>

namespace muster {

namespace {

HttpServerRequest request_of(std::string path,
                             std::vector<std::pair<std::string, std::string>> query) {
  HttpServerRequest request;
  request.method = "GET";
  request.path = std::move(path);
  request.query = std::move(query);
  return request;
}

}  // namespace

TEST_CASE("a target says the same on the other side, without the token") {
  const HttpServerRequest asked = request_of(
      "/api/v1/logs/0/9/std out/%2f\xc3\xa4?#",
      {{"q", "a b&c=d+\x1b\"\xe2\x82\xac"}, {"token", "secret"}, {"", "x"}, {"ranks", "0-7,9"}});
  const std::string target = target_to_ask_for(asked);
  CHECK(is_target(target));
  CHECK(target.find("secret") == std::string::npos);
  CHECK(target.find("ranks=0-7,9") != std::string::npos);
  const auto got = forwarded_request(target, {{"accept", "*/*"}});
  REQUIRE(got);
  CHECK(got->method == "GET");
  CHECK(got->path == asked.path);
  REQUIRE(got->query.size() == 3);
  CHECK(got->query[0] == asked.query[0]);
  CHECK(got->query[1] == asked.query[2]);
  CHECK(got->query[2] == asked.query[3]);
  CHECK(got->header("accept") == "*/*");
}

TEST_CASE("a target that is none is no request") {
  for (const char* target : {"", "http://elsewhere/x", "x", "/a/../b", "/%zz", "*"})
    CHECK_FALSE(forwarded_request(target, {}));
  CHECK_FALSE(is_target("/a b"));
  CHECK_FALSE(is_target("/a\n"));
  CHECK_FALSE(is_target("/\xc3\xa4"));
  CHECK(is_target("/" + std::string(kMaxTarget - 1, 'a')));
  CHECK_FALSE(is_target("/" + std::string(kMaxTarget, 'a')));
}

TEST_CASE("a browser's secrets stay here, what shapes the answer goes along") {
  const HttpHeaders asked = headers_to_ask_with({{"cookie", "token=secret"},
                                                 {"authorization", "Bearer secret"},
                                                 {"host", "muster"},
                                                 {"Range", "bytes=1-2"},
                                                 {"last-event-id", "7-9"},
                                                 {"accept", "text/event-stream"}});
  CHECK(asked == HttpHeaders{{"range", "bytes=1-2"},
                             {"last-event-id", "7-9"},
                             {"accept", "text/event-stream"}});
}

TEST_CASE("an answer sets no cookie and breaks out of no line") {
  const HttpHeaders answered = headers_to_answer_with({{"Content-Type", "text/plain"},
                                                       {"set-cookie", "token=mine"},
                                                       {"content-length", "7"},
                                                       {"x-a", "b\r\nset-cookie: c"},
                                                       {"x b", "c"},
                                                       {"etag", "\"1\""}});
  CHECK(answered == HttpHeaders{{"content-type", "text/plain"}, {"etag", "\"1\""}});
}

TEST_CASE("headers are bounded in number and bytes") {
  HttpHeaders many;
  for (size_t i = 0; i < kMaxForwardedHeaders + 5; ++i)
    many.emplace_back("x-" + std::to_string(i), "v");
  CHECK_FALSE(are_headers(many));
  keep_headers(many);
  CHECK(many.size() == kMaxForwardedHeaders);
  CHECK(are_headers(many));
  HttpHeaders large = {{"a", std::string(kMaxHeaderBytes, 'x')}, {"b", "small"}};
  CHECK_FALSE(are_headers(large));
  keep_headers(large);
  CHECK(large == HttpHeaders{{"b", "small"}});
}

}  // namespace muster
