// SPDX-License-Identifier: Apache-2.0
#include "loop/interfaces.h"

#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>

namespace muster {

std::vector<SocketAddress> local_addresses() {
  std::vector<SocketAddress> result;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return result;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if ((entry->ifa_flags & IFF_UP) == 0) continue;
    SocketAddress address = SocketAddress::from(entry->ifa_addr);
    if (address.family() != AF_UNSPEC) result.push_back(address);
  }
  freeifaddrs(list);
  return result;
}

bool is_local(const SocketAddress& address, const std::vector<SocketAddress>& ours) {
  // The whole of 127.0.0.0/8 is here, though interfaces list only its first address.
  if (address.is_loopback() || address.is_unspecified()) return true;
  return std::ranges::any_of(ours,
                             [&](const SocketAddress& own) { return own.same_host(address); });
}

}  // namespace muster
