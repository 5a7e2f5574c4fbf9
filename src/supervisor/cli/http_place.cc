// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/http_place.h"

#include <algorithm>
#include <cctype>

#include "loop/socket_address.h"
#include "supervisor/cli/rendezvous_options.h"
#include "supervisor/cli/values.h"

namespace muster {

namespace {

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

Result<std::string> literal_of(const std::string& host) {
  if (host == "localhost") return std::string("127.0.0.1");
  Result<SocketAddress> literal = SocketAddress::parse(host, 0);
  if (!literal) {
    return Error{0, "'" + host +
                        "' is no address; give one of this machine's, localhost, or * "
                        "for all of them"};
  }
  return host;
}

}  // namespace

Result<HttpPlace> parse_http_place(std::string_view text) {
  text = trim(text);
  HttpPlace place;
  place.asked = true;
  if (text == "off") {
    place.on = false;
    return place;
  }
  if (text.empty()) return Error{0, "expected HOST:PORT or off"};
  std::string endpoint(text);
  if (all_digits(endpoint)) endpoint = "127.0.0.1:" + endpoint;
  // "::" listens for IPv4 too.
  if (endpoint.starts_with("*")) endpoint.replace(0, 1, "[::]");
  if (endpoint.starts_with(":") && all_digits(endpoint.substr(1))) endpoint.insert(0, "[::]");
  Result<Endpoint> parsed = parse_endpoint(endpoint);
  if (!parsed) return parsed.error();
  Result<std::string> address = literal_of(parsed->host);
  if (!address) return address.error();
  place.address = *address;
  place.port = parsed->port.value_or(0);
  return place;
}

}  // namespace muster
