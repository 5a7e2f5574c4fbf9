// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/in.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::comm::detail {

// Where one rank listens for all others: one address, a port for each rank (its own is 0). As bytes
// it goes through the store.
struct ListenAddresses {
  sockaddr_storage host{};         // IPv4 or IPv6, without a port
  std::vector<in_port_t> ports{};  // network byte order

  std::string encode() const;
  // Takes one from the front of `bytes`; nullopt: malformed, or not of `size` ranks.
  static std::optional<ListenAddresses> decode(std::string_view& bytes, size_t size);
  sockaddr_storage for_rank(size_t rank) const;
};

in_port_t& port_of(sockaddr_storage& address);  // of IPv4 or IPv6

// Gloo's rule which of two connects to the other: the greater address does.
bool connects(const sockaddr_storage& self, const sockaddr_storage& peer);

}  // namespace muster::comm::detail
