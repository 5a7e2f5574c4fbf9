// SPDX-License-Identifier: Apache-2.0
#include "loop/http_exchange.h"

namespace muster {

namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
    text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t'))
    text.remove_suffix(1);
  return text;
}

std::optional<std::string_view> first(
    const std::vector<std::pair<std::string, std::string>>& entries, std::string_view name) {
  for (const auto& [key, value] : entries)
    if (key == name) return value;
  return std::nullopt;
}

}  // namespace

std::optional<std::string_view> HttpServerRequest::header(std::string_view name) const {
  return first(headers, name);
}

std::optional<std::string_view> HttpServerRequest::parameter(std::string_view name) const {
  return first(query, name);
}

std::optional<std::string_view> HttpServerRequest::cookie(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key != "cookie") continue;
    for (std::string_view rest = value; !rest.empty();) {
      const size_t end = std::min(rest.find(';'), rest.size());
      const std::string_view pair = trim(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
      const size_t equals = pair.find('=');
      if (equals != std::string_view::npos && pair.substr(0, equals) == name)
        return pair.substr(equals + 1);
    }
  }
  return std::nullopt;
}

}  // namespace muster
