// SPDX-License-Identifier: Apache-2.0
#include "loop/http_request_parser.h"

#include <doctest/doctest.h>

#include "loop/http_target.h"

namespace muster {

namespace {

using Progress = HttpRequestParser::Progress;
using Requests = std::vector<HttpRequestParser::Parsed>;

constexpr HttpRequestParser::Limits kLimits{1000, 2000, 10};

// All requests that `bytes` have, fed `step` bytes at a time; `status` is that of the refusal.
Requests parse(std::string_view bytes, int& status, size_t step) {
  HttpRequestParser parser(kLimits);
  Requests requests;
  status = 0;
  for (size_t at = 0; at < bytes.size() && status == 0; at += step) {
    std::string_view piece = bytes.substr(at, step);
    while (!piece.empty() && status == 0) {
      const Progress progress = parser.feed(piece);
      if (progress == Progress::kComplete) requests.push_back(parser.take());
      if (progress == Progress::kRefused) status = parser.refusal().status;
    }
  }
  return requests;
}

// The status that the bytes get, 0 if they are requests or may become one. The same however they
// are split.
int refusal(std::string_view bytes) {
  int status = 0, split = 0;
  parse(bytes, status, bytes.size());
  for (const size_t step : {1, 2, 7}) {
    parse(bytes, split, step);
    CHECK(split == status);
  }
  return status;
}

HttpRequestParser::Parsed one(std::string_view bytes) {
  int status = 0;
  Requests whole = parse(bytes, status, bytes.size());
  CHECK(status == 0);
  REQUIRE(whole.size() == 1);
  Requests split = parse(bytes, status, 1);
  REQUIRE(split.size() == 1);
  CHECK(split[0].request.headers == whole[0].request.headers);
  CHECK(split[0].request.body == whole[0].request.body);
  CHECK(split[0].request.query == whole[0].request.query);
  return whole[0];
}

// A request of this head; Host is there.
int with_headers(const std::string& headers, const std::string& body = "") {
  return refusal("POST / HTTP/1.1\r\nHost: a\r\n" + headers + "\r\n" + body);
}

int with_target(const std::string& target) {
  return refusal("GET " + target + " HTTP/1.1\r\nHost: a\r\n\r\n");
}

constexpr const char* kChunked = "Transfer-Encoding: chunked\r\n";

}  // namespace

TEST_SUITE("http requests") {
  TEST_CASE("a request is its method, target, headers and body") {
    const auto parsed = one(
        "POST /a%20b/c?x=1&y=%C3%A4+z&x=2&flag HTTP/1.1\r\nHost: node-a:80\r\nX-Some: \t b \t\r\n"
        "Cookie: a=1; b=2\r\nContent-Length: 5\r\n\r\nhello");
    const HttpServerRequest& request = parsed.request;
    CHECK(request.method == "POST");
    CHECK(request.path == "/a b/c");
    CHECK(request.parameter("x") == "1");
    CHECK(request.parameter("y") == "\xC3\xA4 z");
    CHECK(request.parameter("flag") == "");
    CHECK_FALSE(request.parameter("z"));
    CHECK(request.query.size() == 4);
    CHECK(request.header("x-some") == "b");
    CHECK_FALSE(request.header("X-Some"));
    CHECK(request.cookie("b") == "2");
    CHECK_FALSE(request.cookie("c"));
    CHECK(request.body == "hello");
    CHECK(parsed.keeps_alive);
  }

  TEST_CASE("cookies are found among several and never in another's value") {
    const auto request = one("GET / HTTP/1.1\r\nHost: a\r\nCookie: x=token=1;token=2\r\n"
                             "Cookie: other=3; =4; bare\r\n\r\n")
                             .request;
    CHECK(request.cookie("token") == "2");
    CHECK(request.cookie("other") == "3");
    CHECK_FALSE(request.cookie("bare"));
  }

  TEST_CASE("whether a connection is kept depends on version and header") {
    auto kept = [](const std::string& rest) {
      return one("GET / HTTP/1." + rest + "\r\n").keeps_alive;
    };
    CHECK(kept("1\r\nHost: a\r\n"));
    CHECK_FALSE(kept("1\r\nHost: a\r\nConnection: close\r\n"));
    CHECK_FALSE(kept("1\r\nHost: a\r\nConnection: x, Close\r\n"));
    CHECK_FALSE(kept("0\r\n"));
    CHECK(kept("0\r\nConnection: Keep-Alive\r\n"));
  }

  TEST_CASE("requests follow each other, however they are split") {
    const std::string bytes =
        "\r\nGET /1 HTTP/1.1\r\nHost: a\r\n\r\n"
        "POST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc\r\n"
        "POST /3 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        "3;x=\"y\"\r\nabc\r\n0A\r\n0123456789\r\n0\r\nX: y\r\n\r\n"
        "GET /4 HTTP/1.1\r\nHost: a\r\n\r\n";
    for (size_t step = 1; step <= bytes.size(); ++step) {
      int status = 0;
      const Requests requests = parse(bytes, status, step);
      CHECK(status == 0);
      REQUIRE(requests.size() == 4);
      CHECK(requests[1].request.body == "abc");
      CHECK(requests[2].request.body == "abc0123456789");
      CHECK(requests[3].request.path == "/4");
      CHECK(requests[3].request.body.empty());
    }
  }

  TEST_CASE("who waits for it is to be told to go on, once, before the body has come") {
    HttpRequestParser parser(kLimits);
    std::string_view head =
        "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\n";
    CHECK(parser.feed(head) == Progress::kNeedsMore);
    CHECK(parser.take_wants_continue());
    CHECK_FALSE(parser.take_wants_continue());
    CHECK(with_headers("Expect: tea\r\nContent-Length: 2\r\n") == 417);
    CHECK(with_headers("Expect: 100-continue\r\nContent-Length: 3000\r\n") == 413);
  }

  TEST_CASE("an absolute target is that of its Host") {
    CHECK(one("GET http://A:80/x?y=1 HTTP/1.1\r\nHost: a:80\r\n\r\n").request.path == "/x");
    CHECK(one("GET http://a HTTP/1.1\r\nHost: a\r\n\r\n").request.path == "/");
    CHECK(one("GET http://a?y=1 HTTP/1.1\r\nHost: a\r\n\r\n").request.parameter("y") == "1");
    CHECK(one("GET http://a/ HTTP/1.0\r\n\r\n").request.header("host") == "a");
    CHECK(refusal("GET http://a/ HTTP/1.1\r\nHost: b\r\n\r\n") == 400);
    CHECK(refusal("GET http://a/ HTTP/1.1\r\n\r\n") == 400);
    CHECK(refusal("GET http://a@b/ HTTP/1.1\r\nHost: a@b\r\n\r\n") == 400);
    CHECK(refusal("GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n") == 400);
  }

  TEST_CASE("OPTIONS may ask about the server, others may not") {
    CHECK(one("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n").request.path == "*");
    CHECK(with_target("*") == 400);
  }
}

TEST_SUITE("http requests that are refused") {
  TEST_CASE("a target that two readers could take for different paths") {
    for (const char* target :
         {"x",       "a:80",      "/#f",         "/%",    "/%4",   "/%zz",      "/%00",
          "/%0a",    "/%7f",      "/..",         "/../x", "/x/..", "/x/../y",   "/./x",
          "/x/.",    "/%2e%2e/x", "/x%2f..%2fy", "/.%2e", "/%ff",  "/%c0%af",   "/?x=%00",
          "/?x=%ff", "/?x=%4",    "/?%zz",       "//..",  "/\x7f", "/\xc3\xa4", "http:///x",
          "http://", "ftp://a/",  "/?%00=1"})
      CHECK_MESSAGE(with_target(target) == 400, target);
    for (const char* target :
         {"/", "//", "/x/", "/...", "/.x", "/x..", "/%C3%A4", "/%2fetc", "/?%0a=%0d", "/?", "/?&&",
          "/?=", "/?a=b=c", "/?q=%F0%9F%98%80", "/?x=../.."})
      CHECK_MESSAGE(with_target(target) == 0, target);
  }

  TEST_CASE("a request line that is not one") {
    for (const char* line :
         {"GET", "GET /", "GET  / HTTP/1.1", "GET / HTTP/1.1 ", " GET / HTTP/1.1",
          "GET /  HTTP/1.1", "GET\t/ HTTP/1.1", "GET / x HTTP/1.1", "GET / HTTP/1",
          "GET / http/1.1", "GET / HTTP/1.1x", "GET / HTTP/11.1", "GET / HTTP/1.", "GET / XTTP/1.1",
          "G(T / HTTP/1.1", "GET /\x01 HTTP/1.1", " / HTTP/1.1"})
      CHECK_MESSAGE(refusal(std::string(line) + "\r\nHost: a\r\n\r\n") == 400, line);
  }

  TEST_CASE("methods that are not served, and other versions") {
    for (const char* method : {"TRACE", "CONNECT", "FOO", "get", "PROPFIND", "M-SEARCH", "SOURCE"})
      CHECK_MESSAGE(refusal(std::string(method) + " / HTTP/1.1\r\nHost: a\r\n\r\n") == 501, method);
    for (const char* version : {"HTTP/1.2", "HTTP/2.0", "HTTP/0.9", "HTTP/9.9"})
      CHECK_MESSAGE(refusal(std::string("GET / ") + version + "\r\nHost: a\r\n\r\n") == 505,
                    version);
    CHECK(refusal("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") == 505);
    CHECK(refusal("CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n") == 501);
  }

  TEST_CASE("an offer to speak something else is ignored") {
    CHECK(refusal("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\n"
                  "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n") == 0);
    CHECK(refusal("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
                  "GET  /") == 0);
  }

  TEST_CASE("bytes that are no HTTP, at the first that shows it") {
    CHECK(refusal(std::string_view("\x16\x03\x01\x02\x00", 5)) == 400);
    CHECK(refusal(std::string_view("\0", 1)) == 400);
    CHECK(refusal("\n") == 400);
    CHECK(refusal("\r\n\r\n") == 400);
    CHECK(refusal("\r\r") == 400);
  }

  TEST_CASE("a request without one host") {
    CHECK(refusal("GET / HTTP/1.1\r\n\r\n") == 400);
    CHECK(refusal("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n") == 400);
    CHECK(refusal("GET / HTTP/1.0\r\nHost: a\r\nhost: b\r\n\r\n") == 400);
    for (const char* host : {"", "a b", "a/b", "a,b", "a@b", "a\\b", "a?b", "\xff"})
      CHECK_MESSAGE(refusal(std::string("GET / HTTP/1.1\r\nHost: ") + host + "\r\n\r\n") == 400,
                    host);
    CHECK(refusal("GET / HTTP/1.0\r\n\r\n") == 0);
    CHECK(refusal("GET / HTTP/1.1\r\nHost: [fe80::1%25eth0]:80\r\n\r\n") == 0);
  }

  TEST_CASE("a header that is not one") {
    for (const char* header :
         {"X", "X y", ": y", "X : y", "X\t: y", " X: y", "\tX: y", "X: a\r\n b", "X: a\r\n\tb",
          "X: a\nY: b", "X: a\rY: b", "X: a\x01", "X: \x7f", "X(: y", "X\x80: y", "X: a\r\n\r",
          "\"X\": y", "X: a\n", "\nX: a"})
      CHECK_MESSAGE(with_headers(std::string(header) + "\r\n") == 400, header);
    CHECK(refusal(std::string_view("GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n", 38)) == 400);
    CHECK(with_headers("X:\r\nY: \xff\tb\r\n") == 0);
  }

  TEST_CASE("a body of which the length is told twice or in an odd way") {
    CHECK(with_headers("Content-Length: 0\r\n") == 0);
    for (const char* header :
         {"Content-Length: 1\r\nContent-Length: 1", "Content-Length: 1\r\nContent-Length: 2",
          "Content-Length: 1, 1", "Content-Length: +1", "Content-Length: -1", "Content-Length: 0x1",
          "Content-Length: 1 1", "Content-Length:", "Content-Length: 1.0", "Content-Length: a",
          "Content-Length: 1\r\nTransfer-Encoding: chunked",
          "Transfer-Encoding: chunked\r\nContent-Length: 1", "Content-Length : 1",
          "Transfer-Encoding : chunked", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
          "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
          "Transfer-Encoding:\x0b"
          "chunked",
          "Content-Length: 0\r\nContent-Length: 5"})
      CHECK_MESSAGE(with_headers(std::string(header) + "\r\n") == 400, header);
    for (const char* header :
         {"Transfer-Encoding: gzip, chunked", "Transfer-Encoding: identity",
          "Transfer-Encoding: chunked, identity", "Transfer-Encoding: xchunked",
          "Transfer-Encoding: \"chunked\"", "Transfer-Encoding: chunked,"}) {
      const int status = with_headers(std::string(header) + "\r\n");
      CHECK_MESSAGE((status == 501 || status == 400), header);
    }
    CHECK(refusal("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n") == 400);
    CHECK(with_headers("Transfer-Encoding: CHUNKED\r\n") == 0);
  }

  TEST_CASE("chunks with odd borders") {
    for (const char* body : {"\r\n",
                             " 1\r\n",
                             "1 \r\n",
                             "+1\r\n",
                             "-1\r\n",
                             "0x1\r\n",
                             "1\n",
                             "g\r\n",
                             ";x\r\n",
                             "1;x\n",
                             "1\r\nab\r\n",
                             "1\r\naX\r\n",
                             "1\r\na\n",
                             "1\r\na\r\r",
                             "1\ra",
                             "1;\x01\r\n",
                             "1,1\r\n",
                             "0000000000000001\r\n",
                             "fffffffffffffffff\r\n",
                             "0\r\nX\r\n\r\n",
                             "0\r\n X: y\r\n\r\n",
                             "0\r\nX : y\r\n\r\n",
                             "0\r\nX: y\n\r\n",
                             "0\r\n\n",
                             "0\r\nX: \x01\r\n",
                             "0\r\n: y\r\n"})
      CHECK_MESSAGE(with_headers(kChunked, body) == 400, body);
    CHECK(with_headers(kChunked, "0\r\nX: y\r\nZ:\r\n\r\n") == 0);
    CHECK(with_headers(kChunked, "00\r\n\r\n") == 0);
  }

  TEST_CASE("a head that is too large") {
    const std::string line = "GET / HTTP/1.1\r\nHost: a\r\nX: ";
    CHECK(refusal(line + std::string(1000 - line.size() - 4, 'x') + "\r\n\r\n") == 0);
    CHECK(refusal(line + std::string(1000 - line.size() - 3, 'x') + "\r\n\r\n") == 431);
    CHECK(refusal("GET /" + std::string(5000, 'x')) == 431);
    std::string headers;
    for (int i = 0; i < 9; ++i)
      headers += "X: y\r\n";
    CHECK(with_headers(headers) == 0);
    CHECK(with_headers(headers + "X: y\r\n") == 431);
  }

  TEST_CASE("a body that is too large, as soon as it says so") {
    CHECK(with_headers("Content-Length: 2000\r\n") == 0);
    CHECK(with_headers("Content-Length: 2001\r\n") == 413);
    CHECK(with_headers("Content-Length: 9999999999999999\r\n") == 413);
    CHECK(with_headers("Content-Length: 99999999999999999999999999\r\n") == 400);
    CHECK(with_headers(kChunked, "7d0\r\n") == 0);
    CHECK(with_headers(kChunked, "7d1\r\n") == 413);
    CHECK(with_headers(kChunked, "7d0\r\n" + std::string(2000, 'x') + "\r\n1\r\n") == 413);
    CHECK(with_headers(kChunked, "fffffffffffffff\r\n") == 413);
  }

  TEST_CASE("extensions and trailers without end") {
    CHECK(with_headers(kChunked, "1;" + std::string(1001, 'x')) == 431);
    std::string many;
    for (int i = 0; i < 300; ++i)
      many += "1;abcd\r\nx\r\n";
    CHECK(with_headers(kChunked, many) == 431);
    CHECK(with_headers(kChunked, "0\r\nX: " + std::string(1001, 'x')) == 431);
  }
}

TEST_SUITE("utf-8") {
  TEST_CASE("what is UTF-8 and what only looks like it") {
    for (const char* text : {"", "abc", "\xC3\xA4", "\xE2\x82\xAC", "\xF0\x9F\x98\x80",
                             "\xEF\xBF\xBD", "\xF4\x8F\xBF\xBF"})
      CHECK(is_utf8(text));
    for (const char* text : {"\x80", "\xC3", "\xC0\xAF", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80",
                             "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xE2\x82",
                             "\xE2\x28\xA1", "\xFF", "a\xC3z"})
      CHECK_FALSE(is_utf8(text));
  }
}

}  // namespace muster
