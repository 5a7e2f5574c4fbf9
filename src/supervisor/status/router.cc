// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/router.h"

#include <algorithm>
#include <utility>

namespace muster {

namespace {

// The part before the next slash, which is taken off `path` with it.
std::string_view next_part(std::string_view& path) {
  const std::string_view part = path.substr(0, path.find('/'));
  path.remove_prefix(std::min(path.size(), part.size() + 1));
  return part;
}

std::optional<std::vector<std::string>> match(std::string_view pattern, std::string_view path) {
  std::vector<std::string> captures;
  if (std::count(pattern.begin(), pattern.end(), '/') !=
      std::count(path.begin(), path.end(), '/')) {
    return std::nullopt;
  }
  while (!pattern.empty() || !path.empty()) {
    const std::string_view wanted = next_part(pattern);
    const std::string_view part = next_part(path);
    if (!wanted.empty() && wanted.front() == '{') {
      if (part.empty()) return std::nullopt;
      captures.emplace_back(part);
    } else if (wanted != part) {
      return std::nullopt;
    }
  }
  return captures;
}

}  // namespace

RouteMatch find_route(std::span<const Route> routes, std::string_view method,
                      std::string_view path) {
  RouteMatch found;
  for (const Route& route : routes) {
    std::optional<std::vector<std::string>> captures = match(route.pattern, path);
    if (!captures) continue;
    if (route.method == method || (route.method == "GET" && method == "HEAD")) {
      return {route.handler, std::move(*captures), ""};
    }
    if (!found.allow.empty()) found.allow += ", ";
    found.allow += route.method == "GET" ? std::string_view("GET, HEAD") : route.method;
  }
  return found;
}

std::string list_routes(std::span<const Route> routes) {
  std::string list;
  for (const Route& route : routes) {
    if (!list.empty()) list += ", ";
    if (route.method != "GET") list.append(route.method).append(" ");
    list += route.pattern;
  }
  return list;
}

}  // namespace muster
