// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/access.h"

#include <strings.h>

#include <optional>
#include <utility>

#include "loop/socket_address.h"

namespace muster {

namespace {

bool same_name(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

bool same_name_or_short(std::string_view host, std::string_view name) {
  return !name.empty() &&
         (same_name(host, name) || same_name(host, name.substr(0, name.find('.'))));
}

// "[::1]:80" -> "::1", "localhost.:80" -> "localhost".
std::string_view host_part(std::string_view host) {
  if (!host.empty() && host.front() == '[') {
    const size_t end = host.find(']');
    return end == std::string_view::npos ? std::string_view() : host.substr(1, end - 1);
  }
  host = host.substr(0, host.find(':'));
  if (!host.empty() && host.back() == '.') host.remove_suffix(1);
  return host;
}

// The port does not matter: whoever forwards one (ssh -L) chooses another, and no name service
// makes a foreign name into localhost or into an address.
bool host_is_ours(const AccessRules& rules, const HttpServerRequest& request) {
  const std::string host(host_part(request.header("host").value_or("")));
  if (same_name(host, "localhost") || same_name_or_short(host, rules.host_name)) return true;
  const Result<SocketAddress> address = SocketAddress::parse(host, 0);
  return address && (address->is_loopback() || address->same_host(request.local));
}

// A link that was followed or an address that was typed, as opposed to what a page fetches.
bool is_navigation(const HttpServerRequest& request) {
  return request.method == "GET" && request.header("sec-fetch-mode") == "navigate" &&
         request.header("sec-fetch-dest").value_or("document") == "document";
}

bool from_other_site(const HttpServerRequest& request) {
  const std::string_view site = request.header("sec-fetch-site").value_or("none");
  return site != "none" && site != "same-origin";
}

bool origin_is_ours(const HttpServerRequest& request) {
  std::optional<std::string_view> origin = request.header("origin");
  if (!origin) return true;
  const size_t scheme = origin->find("://");
  if (scheme == std::string_view::npos) return false;  // "null" too
  const std::string_view name = origin->substr(0, scheme);
  return (name == "http" || name == "https") &&
         same_name(origin->substr(scheme + 3), request.header("host").value_or(""));
}

bool is_reading(const HttpServerRequest& request) {
  return request.method == "GET" || request.method == "HEAD";
}

std::string cookie_name(const AccessRules& rules) {
  return "muster_" + std::to_string(rules.port);
}

std::optional<std::string_view> bearer(const HttpServerRequest& request) {
  constexpr std::string_view kScheme = "bearer ";
  const std::string_view value = request.header("authorization").value_or("");
  if (value.size() < kScheme.size() || !same_name(value.substr(0, kScheme.size()), kScheme)) {
    return std::nullopt;
  }
  return value.substr(kScheme.size());
}

bool is_token(const AccessRules& rules, std::optional<std::string_view> text) {
  return text && !rules.token.empty() && same_secret(*text, rules.token);
}

// The same address without the token. Never one of another host: "//name/" would be that.
std::string without_token(std::string_view target) {
  const size_t mark = target.find('?');
  std::string path(target.substr(0, mark));
  if (path.empty() || path[0] != '/' || (path.size() > 1 && (path[1] == '/' || path[1] == '\\'))) {
    path = "/";
  }
  if (mark == std::string_view::npos) return path;
  std::string_view rest = target.substr(mark + 1);
  char separator = '?';
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    if (part.empty() || part == "token" || part.substr(0, 6) == "token=") continue;
    path.append(1, separator).append(part);
    separator = '&';
  }
  return path;
}

AccessDecision allow() {
  return {AccessDecision::Kind::kAllow, 200, "", "", "", ""};
}

AccessDecision refuse(int status, std::string message, std::string hint) {
  return {AccessDecision::Kind::kRefuse, status, std::move(message), std::move(hint), "", ""};
}

// The token leaves the address bar, and so the history and whatever is copied from it.
AccessDecision welcome(const AccessRules& rules, const HttpServerRequest& request) {
  AccessDecision decision;
  decision.location = without_token(request.target);
  decision.cookie = cookie_name(rules) + "=" + rules.token + "; Path=/; HttpOnly; SameSite=Strict";
  // What a link of another site led to is redirected in that site's name, without our cookie. A
  // page of our own that goes on by itself does it in ours.
  const bool led_here = from_other_site(request);
  decision.kind = led_here ? AccessDecision::Kind::kRefresh : AccessDecision::Kind::kRedirect;
  decision.status = led_here ? 200 : 303;
  return decision;
}

bool shows_pages(const HttpServerRequest& request) {
  return request.method == "GET" &&
         request.header("accept").value_or("").find("text/html") != std::string_view::npos;
}

AccessDecision refuse_stranger(const HttpServerRequest& request) {
  AccessDecision decision = refuse(
      401, "this needs the token of the run",
      is_reading(request)
          ? "open the whole address that muster printed when it started (with ?token=...), or send "
            "the token as 'Authorization: Bearer TOKEN'; reading needs none from the machine and "
            "user that run muster"
          : "changing the job always needs the token: send 'Authorization: Bearer TOKEN' with the "
            "token from the address that muster printed when it started");
  // Our cookie does not come along where a link of another site led here, but it does when the
  // page that is shown then asks for the same.
  if (shows_pages(request)) decision.kind = AccessDecision::Kind::kAskAgain;
  return decision;
}

}  // namespace

bool same_secret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  volatile unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i)
    difference = difference | (static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]));
  return difference == 0;
}

AccessDecision decide_access(const AccessRules& rules, const HttpServerRequest& request,
                             const std::function<bool()>& same_user) {
  if (request.path == "/healthz" || request.path == kAskAgainPath) return allow();
  if (!host_is_ours(rules, request)) {
    return refuse(403, "muster is not called by that name here (Host)",
                  "use localhost, the address it listens on" +
                      (rules.host_name.empty() ? "" : ", or " + rules.host_name));
  }
  if (!origin_is_ours(request) || (from_other_site(request) && !is_navigation(request))) {
    return refuse(403, "requests of other sites are refused",
                  "open the page itself, or use a client that is no browser");
  }
  if (is_token(rules, request.parameter("token"))) {
    return shows_pages(request) ? welcome(rules, request) : allow();
  }
  if (is_token(rules, bearer(request)) || is_token(rules, request.cookie(cookie_name(rules)))) {
    return allow();
  }
  if (is_reading(request) && same_user()) return allow();
  return refuse_stranger(request);
}

}  // namespace muster
