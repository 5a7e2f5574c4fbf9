// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/router.h"

#include <doctest/doctest.h>

namespace muster {

namespace {

void first(StatusContext&, StatusCall) {}
void second(StatusContext&, StatusCall) {}
void third(StatusContext&, StatusCall) {}

constexpr Route kRoutes[] = {
    {"GET", "/a", first}, {"POST", "/a", second}, {"GET", "/logs/{n}/{stream}", third}};

RouteMatch find(std::string_view method, std::string_view path) {
  return find_route(kRoutes, method, path);
}

}  // namespace

TEST_CASE("a path leads to its handler, HEAD to that of GET") {
  CHECK((find("GET", "/a").handler == first));
  CHECK((find("HEAD", "/a").handler == first));
  CHECK((find("POST", "/a").handler == second));
}

TEST_CASE("names in a pattern take whole parts") {
  const RouteMatch match = find("GET", "/logs/3/stdout");
  CHECK((match.handler == third));
  CHECK(match.captures == std::vector<std::string>{"3", "stdout"});
  for (const char* path : {"/logs/3", "/logs/3/", "/logs//stdout", "/logs/3/stdout/", "/logs/3/a/b",
                           "/logs", "", "/", "logs/3/stdout"}) {
    CAPTURE(path);
    CHECK((find("GET", path).handler == nullptr));
    CHECK(find("GET", path).allow == "");
  }
}

TEST_CASE("a method that a path does not take is told which it takes") {
  CHECK((find("DELETE", "/a").handler == nullptr));
  CHECK(find("DELETE", "/a").allow == "GET, HEAD, POST");
  CHECK(find("POST", "/logs/3/stdout").allow == "GET, HEAD");
}

TEST_CASE("an unknown path is told what there is") {
  CHECK(list_routes(kRoutes) == "/a, POST /a, /logs/{n}/{stream}");
}

}  // namespace muster
