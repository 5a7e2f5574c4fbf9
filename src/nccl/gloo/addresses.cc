// SPDX-License-Identifier: Apache-2.0
#include "nccl/gloo/addresses.h"

#include <cstring>

namespace muster::comm::detail {
namespace {

size_t length_of(sa_family_t family) {
  if (family == AF_INET) return sizeof(sockaddr_in);
  return family == AF_INET6 ? sizeof(sockaddr_in6) : 0;
}

}  // namespace

in_port_t& port_of(sockaddr_storage& address) {
  if (address.ss_family == AF_INET6) return reinterpret_cast<sockaddr_in6&>(address).sin6_port;
  return reinterpret_cast<sockaddr_in&>(address).sin_port;
}

std::string ListenAddresses::encode() const {
  std::string bytes(reinterpret_cast<const char*>(&host), length_of(host.ss_family));
  bytes.append(reinterpret_cast<const char*>(ports.data()), ports.size() * sizeof(in_port_t));
  return bytes;
}

std::optional<ListenAddresses> ListenAddresses::decode(std::string_view& bytes, size_t size) {
  ListenAddresses result;
  sa_family_t family = 0;
  if (bytes.size() < sizeof family) return std::nullopt;
  std::memcpy(&family, bytes.data(), sizeof family);
  const size_t length = length_of(family);
  const size_t ports = size * sizeof(in_port_t);
  if (length == 0 || bytes.size() < length + ports) return std::nullopt;
  std::memcpy(&result.host, bytes.data(), length);
  result.ports.resize(size);
  std::memcpy(result.ports.data(), bytes.data() + length, ports);
  bytes.remove_prefix(length + ports);
  return result;
}

sockaddr_storage ListenAddresses::for_rank(size_t rank) const {
  sockaddr_storage address = host;
  port_of(address) = ports.at(rank);
  return address;
}

bool connects(const sockaddr_storage& self, const sockaddr_storage& peer) {
  int order = 0;
  if (self.ss_family == AF_INET) {
    const auto& a = reinterpret_cast<const sockaddr_in&>(self);
    const auto& b = reinterpret_cast<const sockaddr_in&>(peer);
    order = std::memcmp(&a.sin_addr, &b.sin_addr, sizeof a.sin_addr);
    if (order == 0) order = a.sin_port - b.sin_port;
  } else {
    const auto& a = reinterpret_cast<const sockaddr_in6&>(self);
    const auto& b = reinterpret_cast<const sockaddr_in6&>(peer);
    order = std::memcmp(&a.sin6_addr, &b.sin6_addr, sizeof a.sin6_addr);
    if (order == 0) order = a.sin6_port - b.sin6_port;
  }
  return order > 0;
}

}  // namespace muster::comm::detail
