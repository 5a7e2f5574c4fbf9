// SPDX-License-Identifier: Apache-2.0
#include "supervisor/commands/run_url.h"

#include <doctest/doctest.h>

#include "supervisor/commands/browser.h"

namespace muster {

TEST_CASE("what is meant as an address is told from a folder and an id") {
  for (const char* text : {"http://127.0.0.1:1/", "https://a", "node-a:34521", "[::1]:8080/x?y"}) {
    CAPTURE(text);
    CHECK(looks_like_url(text));
  }
  for (const char* text :
       {"", "4f1c", "runs/4f1c_abcdefgh", "./node-a:34521", "a:b", ":80", "a:"}) {
    CAPTURE(text);
    CHECK_FALSE(looks_like_url(text));
  }
}

TEST_CASE("an address is read as the run prints it, and as people shorten it") {
  auto check = [](const char* text, const char* host, int port, const char* token) {
    CAPTURE(text);
    Result<RunUrl> url = parse_run_url(text);
    REQUIRE(url);
    CHECK(url->host == host);
    CHECK(url->port == port);
    CHECK(url->token == token);
  };
  check("http://127.0.0.1:34521/?token=0a1b", "127.0.0.1", 34521, "0a1b");
  check("http://127.0.0.1:34521?token=0a1b", "127.0.0.1", 34521, "0a1b");
  check("http://127.0.0.1:34521", "127.0.0.1", 34521, "");
  check("node-a:8080/", "node-a", 8080, "");
  check("http://[::1]:8080/x/y?a=b&token=cd#/logs", "::1", 8080, "cd");
  check("http://node-a/status?token=", "node-a", 80, "");
  check("http://node-a/?notoken=1", "node-a", 80, "");
}

TEST_CASE("an address that cannot be is refused") {
  for (const char* text :
       {"https://node-a:1/", "ftp://x", "http://node-a:99999/", "http://::1:80/"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_run_url(text));
  }
}

TEST_CASE("a value in a query is encoded") {
  CHECK(url_encoded("a-b_c.d~9") == "a-b_c.d~9");
  CHECK(url_encoded("x&y=z +%\xC3\xA4\n") == "x%26y%3Dz%20%2B%25%C3%A4%0A");
}

TEST_CASE("the page that leads to an address cannot be broken out of") {
  const std::string page = leading_page("http://h:1/?token=a&b=\"><script>");
  CHECK(page.find("<script") == std::string::npos);
  CHECK(page.find("url=http://h:1/?token=a&amp;b=") != std::string::npos);
}

}  // namespace muster
