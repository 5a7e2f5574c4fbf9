// SPDX-License-Identifier: Apache-2.0
#include "loop/http_content.h"

#include <doctest/doctest.h>

#include "loop/gzip.h"

namespace muster {

namespace {

HttpServerRequest with(HttpHeaders headers) {
  HttpServerRequest request;
  request.method = "GET";
  request.headers = std::move(headers);
  return request;
}

std::string header(const HttpContentAnswer& answer, std::string_view name) {
  for (const auto& [key, value] : answer.headers)
    if (key == name) return value;
  return {};
}

std::string gzip(std::string_view text) {
  GzipWriter writer;
  std::string packed = writer.add(text);
  return packed += writer.finish();
}

// "2+3" for a part, "all", or "none".
std::string range(std::string_view header, int64_t size, HttpHeaders more = {}) {
  more.emplace_back("range", header);
  const HttpRange range = choose_range(with(std::move(more)), size, "\"v\"");
  if (range.kind == HttpRange::Kind::kUnsatisfiable) return "none";
  if (range.kind == HttpRange::Kind::kWhole) return "all";
  return std::to_string(range.first) + "+" + std::to_string(range.count);
}

constexpr std::string_view kText = "0123456789";

}  // namespace

TEST_SUITE("http content") {
  TEST_CASE("a range is taken out of what there is") {
    CHECK(range("bytes=0-0", 10) == "0+1");
    CHECK(range("bytes=2-4", 10) == "2+3");
    CHECK(range("bytes=2-", 10) == "2+8");
    CHECK(range("bytes=2-99", 10) == "2+8");
    CHECK(range("bytes=-3", 10) == "7+3");
    CHECK(range("bytes=-99", 10) == "0+10");
    CHECK(range("BYTES = 1-2", 10) == "all");
    CHECK(range("Bytes=1-2", 10) == "1+2");
  }

  TEST_CASE("a range beyond the end cannot be had") {
    CHECK(range("bytes=10-", 10) == "none");
    CHECK(range("bytes=10-20", 10) == "none");
    CHECK(range("bytes=-0", 10) == "none");
    CHECK(range("bytes=0-", 0) == "none");
    CHECK(range("bytes=-1", 0) == "none");
  }

  TEST_CASE("a range that makes no sense is as if it were not there") {
    for (const char* text :
         {"bytes=", "bytes=-", "bytes=4-2", "bytes=a-b", "bytes=1-2,4-5", "lines=1-2", "bytes=+1-2",
          "bytes=--1", "bytes=1-99999999999999999999", "", "1-2"})
      CHECK_MESSAGE(range(text, 10) == "all", text);
  }

  TEST_CASE("a condition that does not hold gets everything") {
    CHECK(range("bytes=2-4", 10, {{"if-range", "\"v\""}}) == "2+3");
    CHECK(range("bytes=2-4", 10, {{"if-range", "\"w\""}}) == "all");
    CHECK(range("bytes=2-4", 10, {{"if-range", "W/\"v\""}}) == "all");
    CHECK(range("bytes=2-4", 10, {{"if-range", "Sat, 29 Oct 1994 19:43:31 GMT"}}) == "all");
    HttpServerRequest post = with({{"range", "bytes=2-4"}});
    post.method = "POST";
    CHECK(choose_range(post, 10, "").kind == HttpRange::Kind::kWhole);
  }

  TEST_CASE("a client that has the content gets no body") {
    CHECK(client_has(with({{"if-none-match", "\"v\""}}), "\"v\""));
    CHECK(client_has(with({{"if-none-match", "\"u\", W/\"v\""}}), "\"v\""));
    CHECK(client_has(with({{"if-none-match", "*"}}), "\"v\""));
    CHECK_FALSE(client_has(with({{"if-none-match", "\"u\""}}), "\"v\""));
    CHECK_FALSE(client_has(with({}), "\"v\""));
    const HttpContentAnswer answer =
        answer_content(with({{"if-none-match", "\"v\""}}), {kText, false, "text/plain", "v"});
    CHECK(answer.status == 304);
    CHECK(answer.body.empty());
    CHECK(header(answer, "ETag") == "\"v\"");
  }

  TEST_CASE("gzip is for those who say that they take it") {
    CHECK(accepts_gzip(with({{"accept-encoding", "deflate, gzip, br"}})));
    CHECK(accepts_gzip(with({{"accept-encoding", "br"}, {"accept-encoding", "GZIP;q=0.5"}})));
    CHECK(accepts_gzip(with({{"accept-encoding", "*"}})));
    CHECK_FALSE(accepts_gzip(with({{"accept-encoding", "*, gzip;q=0"}})));
    CHECK_FALSE(accepts_gzip(with({{"accept-encoding", "gzip; q=0.000"}})));
    CHECK_FALSE(accepts_gzip(with({{"accept-encoding", "identity"}})));
    CHECK_FALSE(accepts_gzip(with({})));
  }

  TEST_CASE("a packed content goes out as it is, or unpacked") {
    const std::string packed = gzip(kText);
    const HttpContent content{packed, true, "text/plain", "v"};
    const HttpContentAnswer as_is = answer_content(with({{"accept-encoding", "gzip"}}), content);
    CHECK(as_is.body == packed);
    CHECK(header(as_is, "Content-Encoding") == "gzip");
    const HttpContentAnswer plain = answer_content(with({}), content);
    CHECK(plain.body == kText);
    CHECK(header(plain, "Content-Encoding").empty());
    CHECK(header(plain, "Content-Type") == "text/plain");
    CHECK(header(plain, "Vary") == "Accept-Encoding");
    CHECK(header(plain, "ETag") != header(as_is, "ETag"));
  }

  TEST_CASE("a part of a content says which") {
    const HttpContent content{kText, false, "text/plain", "v"};
    const HttpContentAnswer part = answer_content(with({{"range", "bytes=2-4"}}), content);
    CHECK(part.status == 206);
    CHECK(part.body == "234");
    CHECK(header(part, "Content-Range") == "bytes 2-4/10");
    const HttpContentAnswer none = answer_content(with({{"range", "bytes=10-"}}), content);
    CHECK(none.status == 416);
    CHECK(none.body.empty());
    CHECK(header(none, "Content-Range") == "bytes */10");
    const HttpContentAnswer whole = answer_content(with({}), content);
    CHECK(whole.status == 200);
    CHECK(whole.body == kText);
    CHECK(header(whole, "Accept-Ranges") == "bytes");
  }
}

TEST_SUITE("gzip") {
  TEST_CASE("what was packed piece by piece is unpacked as it was") {
    std::string text;
    for (int i = 0; i < 100'000; ++i)
      text += std::to_string(i * 7919) + "\n";
    GzipWriter writer;
    std::string packed;
    for (size_t at = 0; at < text.size(); at += 10'007)
      packed += writer.add(std::string_view(text).substr(at, 10'007));
    packed += writer.finish();
    CHECK(packed.size() < text.size());
    auto back = gunzip(packed, text.size());
    REQUIRE(back.has_value());
    CHECK(*back == text);
    CHECK_FALSE(gunzip(packed, text.size() - 1).has_value());
    CHECK_FALSE(gunzip(packed.substr(0, packed.size() / 2), text.size()).has_value());
    CHECK_FALSE(gunzip("not packed", 100).has_value());
  }
}

}  // namespace muster
