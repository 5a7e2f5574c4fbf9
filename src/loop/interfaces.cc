// SPDX-License-Identifier: Apache-2.0
#include "loop/interfaces.h"

#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <iterator>
#include <string>

#include "loop/unique_fd.h"

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

namespace {

// The source address of packets to `far_away`; none is sent.
SocketAddress source_towards(const std::string& far_away) {
  Result<SocketAddress> to = SocketAddress::parse(far_away, 9);
  if (!to) return {};
  UniqueFd probe(socket(to->family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!probe || connect(probe.get(), to->raw(), to->size()) != 0) return {};
  return SocketAddress::local(probe.get()).with_port(0);
}

}  // namespace

std::vector<SocketAddress> reachable_addresses() {
  // The documentation's own networks: as far away as any.
  std::vector<SocketAddress> candidates = {source_towards("192.0.2.1"),
                                           source_towards("2001:db8::1")};
  const std::vector<SocketAddress> ours = local_addresses();
  candidates.insert(candidates.end(), ours.begin(), ours.end());
  std::vector<SocketAddress> result;
  for (const SocketAddress& address : candidates) {
    const bool usable = address.family() != AF_UNSPEC && !address.is_loopback() &&
                        !address.is_link_local() && std::ranges::count(result, address) == 0;
    if (usable) result.push_back(address);
  }
  if (!result.empty()) return result;
  std::ranges::copy_if(ours, std::back_inserter(result), &SocketAddress::is_loopback);
  return result;
}

bool is_local(const SocketAddress& address, const std::vector<SocketAddress>& ours) {
  // The whole of 127.0.0.0/8 is here, though interfaces list only its first address.
  if (address.is_loopback() || address.is_unspecified()) return true;
  return std::ranges::any_of(ours,
                             [&](const SocketAddress& own) { return own.same_host(address); });
}

}  // namespace muster
