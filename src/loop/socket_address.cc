// SPDX-License-Identifier: Apache-2.0
#include "loop/socket_address.h"

#include <arpa/inet.h>
#include <netdb.h>

#include <cerrno>

namespace muster {

Result<SocketAddress> SocketAddress::parse(const std::string& address, int port) {
  if (port < 0 || port > 65535)
    return Error{EINVAL, "port " + std::to_string(port) + ": not between 0 and 65535"};
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  // Numeric only, so this parses (scopes included) and never asks a name server.
  if (getaddrinfo(address.c_str(), nullptr, &hints, &found) != 0)
    return Error{EINVAL, "'" + address + "': not an IPv4 or IPv6 address"};
  SocketAddress result;
  if (found->ai_family == AF_INET6) {
    result.storage_.v6 = *reinterpret_cast<const sockaddr_in6*>(found->ai_addr);
    result.storage_.v6.sin6_port = htons(static_cast<uint16_t>(port));
  } else {
    result.storage_.v4 = *reinterpret_cast<const sockaddr_in*>(found->ai_addr);
    result.storage_.v4.sin_port = htons(static_cast<uint16_t>(port));
  }
  freeaddrinfo(found);
  return result;
}

SocketAddress SocketAddress::local(int fd) {
  SocketAddress result;
  socklen_t size = kCapacity;
  if (getsockname(fd, result.raw(), &size) != 0) return SocketAddress();
  return result;
}

std::string SocketAddress::to_string() const {
  char text[INET6_ADDRSTRLEN] = "";
  const std::string port_text = std::to_string(port());
  if (family() == AF_INET) {
    inet_ntop(AF_INET, &storage_.v4.sin_addr, text, sizeof text);
    return std::string(text) + ":" + port_text;
  }
  if (family() != AF_INET6) return "unknown address";
  const in6_addr& address = storage_.v6.sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&address)) {
    inet_ntop(AF_INET, &address.s6_addr[12], text, sizeof text);
    return std::string(text) + ":" + port_text;
  }
  inet_ntop(AF_INET6, &address, text, sizeof text);
  return std::string(1, '[') + text + "]:" + port_text;
}

int SocketAddress::port() const {
  if (family() == AF_INET) return ntohs(storage_.v4.sin_port);
  return family() == AF_INET6 ? ntohs(storage_.v6.sin6_port) : 0;
}

socklen_t SocketAddress::size() const {
  return family() == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

}  // namespace muster
