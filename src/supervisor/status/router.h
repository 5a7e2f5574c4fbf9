// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/status/status_context.h"

namespace muster {

// A path and who answers it. "{name}" stands for any one part of a path.
struct Route {
  std::string_view method;  // GET stands for HEAD too
  std::string_view pattern;
  StatusHandler handler;
};

// Everything that can be asked for (routes.cc).
std::span<const Route> status_routes();

struct RouteMatch {
  StatusHandler handler = nullptr;
  std::vector<std::string> captures;
  std::string allow;  // without a handler: the methods that this path takes, "" if there is no such
};
RouteMatch find_route(std::span<const Route> routes, std::string_view method,
                      std::string_view path);

// "GET /status, ...": what the answer to an unknown path names.
std::string list_routes(std::span<const Route> routes);

}  // namespace muster
