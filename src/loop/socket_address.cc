// SPDX-License-Identifier: Apache-2.0
#include "loop/socket_address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>

#include <cerrno>
#include <cstring>

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
  SocketAddress result = from(found->ai_addr).with_port(port);
  freeaddrinfo(found);
  return result;
}

SocketAddress SocketAddress::from(const sockaddr* address) {
  SocketAddress result;
  if (address == nullptr) return result;
  if (address->sa_family == AF_INET)
    std::memcpy(&result.storage_.v4, address, sizeof result.storage_.v4);
  if (address->sa_family == AF_INET6)
    std::memcpy(&result.storage_.v6, address, sizeof result.storage_.v6);
  return result.unmapped();
}

SocketAddress SocketAddress::local(int fd) {
  SocketAddress result;
  socklen_t size = kCapacity;
  if (getsockname(fd, result.raw(), &size) != 0) return SocketAddress();
  return result.unmapped();
}

SocketAddress SocketAddress::unmapped() const {
  if (family() != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&storage_.v6.sin6_addr)) return *this;
  SocketAddress result;
  result.storage_.v4.sin_family = AF_INET;
  result.storage_.v4.sin_port = storage_.v6.sin6_port;
  std::memcpy(&result.storage_.v4.sin_addr, &storage_.v6.sin6_addr.s6_addr[12], sizeof(in_addr));
  return result;
}

std::string SocketAddress::to_string() const {
  const std::string port_text = std::to_string(port());
  if (family() == AF_INET) return host() + ":" + port_text;
  if (family() != AF_INET6) return "unknown address";
  return "[" + host() + "]:" + port_text;
}

std::string SocketAddress::host() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (family() == AF_INET) {
    inet_ntop(AF_INET, &storage_.v4.sin_addr, text, sizeof text);
    return text;
  }
  if (family() != AF_INET6) return "";
  inet_ntop(AF_INET6, &storage_.v6.sin6_addr, text, sizeof text);
  const uint32_t scope = storage_.v6.sin6_scope_id;
  if (scope == 0) return text;
  char name[IF_NAMESIZE];
  const bool named = if_indextoname(scope, name) != nullptr;
  return std::string(text) + "%" + (named ? std::string(name) : std::to_string(scope));
}

int SocketAddress::port() const {
  if (family() == AF_INET) return ntohs(storage_.v4.sin_port);
  return family() == AF_INET6 ? ntohs(storage_.v6.sin6_port) : 0;
}

SocketAddress SocketAddress::with_port(int port) const {
  SocketAddress result = *this;
  const uint16_t number = htons(static_cast<uint16_t>(port));
  if (family() == AF_INET) result.storage_.v4.sin_port = number;
  if (family() == AF_INET6) result.storage_.v6.sin6_port = number;
  return result;
}

bool SocketAddress::is_loopback() const {
  if (family() == AF_INET) return ntohl(storage_.v4.sin_addr.s_addr) >> 24 == 127;
  return family() == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&storage_.v6.sin6_addr);
}

bool SocketAddress::is_unspecified() const {
  if (family() == AF_INET) return storage_.v4.sin_addr.s_addr == 0;
  return family() == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&storage_.v6.sin6_addr);
}

bool SocketAddress::is_link_local() const {
  if (family() == AF_INET) return ntohl(storage_.v4.sin_addr.s_addr) >> 16 == 0xa9fe;
  return family() == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&storage_.v6.sin6_addr);
}

bool SocketAddress::same_host(const SocketAddress& other) const {
  if (family() != other.family()) return false;
  if (family() == AF_INET) return storage_.v4.sin_addr.s_addr == other.storage_.v4.sin_addr.s_addr;
  if (family() != AF_INET6) return true;
  const sockaddr_in6& a = storage_.v6;
  const sockaddr_in6& b = other.storage_.v6;
  return IN6_ARE_ADDR_EQUAL(&a.sin6_addr, &b.sin6_addr) && a.sin6_scope_id == b.sin6_scope_id;
}

bool SocketAddress::operator==(const SocketAddress& other) const {
  return same_host(other) && port() == other.port();
}

socklen_t SocketAddress::size() const {
  return family() == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

}  // namespace muster
