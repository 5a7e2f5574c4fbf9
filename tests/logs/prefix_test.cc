// SPDX-License-Identifier: Apache-2.0
#include "supervisor/logs/prefix.h"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <time.h>

namespace muster {

namespace {

std::string filled(std::string_view pattern) {
  Prefix prefix(pattern, {{"role_name", "default"},
                          {"rank", "1"},
                          {"local_rank", "1"},
                          {"hostname", "host"},
                          {"pid", "42"}});
  return std::string(prefix.text({}));
}

}  // namespace

TEST_CASE("a template follows the rules of safe substitution") {
  CHECK(filled("<${hostname} $rank ${local_rank} ${role_name} $$ ${nope}> ") ==
        "<host 1 1 default $ ${nope}> ");
  CHECK(filled("[${role_name}${rank}]:") == "[default1]:");
  CHECK(filled("$pid$rank") == "421");
  CHECK(filled("$rankx ${rank}x") == "$rankx 1x");
}

TEST_CASE("malformed references stay as they are") {
  CHECK(filled("$") == "$");
  CHECK(filled("a$ b") == "a$ b");
  CHECK(filled("$1") == "$1");
  CHECK(filled("${rank") == "${rank");
  CHECK(filled("${}") == "${}");
  CHECK(filled("${ra nk}") == "${ra nk}");
  CHECK(filled("$$$rank$$rank") == "$1$rank");
}

TEST_CASE("the time is that of the line") {
  setenv("TZ", "UTC", 1);
  tzset();
  Prefix prefix("${time} ${rank}|", {{"rank", "3"}});
  using namespace std::chrono;
  system_clock::time_point at(seconds(1'795'953'601) + milliseconds(7));
  CHECK(prefix.text(at) == "2026-11-29T12:00:01.007 3|");
  CHECK(prefix.text(at + milliseconds(995)) == "2026-11-29T12:00:02.002 3|");
}

TEST_CASE("an empty template makes no prefix") {
  CHECK(Prefix("", {}).empty());
  CHECK_FALSE(Prefix("$time", {}).empty());
}

}  // namespace muster
