// SPDX-License-Identifier: Apache-2.0
#include "nccl/join/local_address.h"

#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <memory>
#include <sstream>
#include <vector>

#include "loop/socket_address.h"

namespace muster::comm::detail {

namespace {

struct Interface {
  std::string name{};
  SocketAddress address{};
};

// Those that are up and have an address, IPv4 before IPv6, otherwise in the kernel's order.
std::vector<Interface> interfaces() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  std::vector<Interface> found;
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || (at->ifa_flags & IFF_UP) == 0) continue;
    const SocketAddress address = SocketAddress::from(at->ifa_addr);
    if (address.family() == AF_INET || address.family() == AF_INET6)
      found.push_back({at->ifa_name, address});
  }
  std::ranges::stable_sort(found, {}, [](const Interface& interface) {
    return interface.address.family() == AF_INET ? 0 : 1;
  });
  return found;
}

// Bridges and pairs that lead to containers of this host only.
bool leads_inside(const std::string& name) {
  return name.starts_with("docker") || name.starts_with("virbr") || name.starts_with("veth") ||
         name.starts_with("br-");
}

std::string names_of(const std::vector<Interface>& list) {
  std::vector<std::string> names;
  for (const Interface& interface : list)
    if (std::ranges::find(names, interface.name) == names.end()) names.push_back(interface.name);
  std::string text;
  for (const std::string& name : names)
    text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

Result<std::string> chosen_address(const Variables& variables) {
  for (const char* variable : {"MUSTER_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"}) {
    const std::optional<std::string> wanted = variables(variable);
    if (!wanted) continue;
    const std::vector<Interface> list = interfaces();
    std::istringstream names(*wanted);
    for (std::string name; std::getline(names, name, ',');) {
      const auto found = std::ranges::find(list, name, &Interface::name);
      if (found != list.end()) return found->address.host();
    }
    return Error{ErrorCode::kInvalidArgument, "joining: " + std::string(variable) + "='" + *wanted +
                                                  "': no such interface with an address; there "
                                                  "are " +
                                                  names_of(list)};
  }
  return std::string();
}

std::string outside_address() {
  const std::vector<Interface> list = interfaces();
  for (const bool any : {false, true})
    for (const Interface& interface : list)
      if (!interface.address.is_loopback() && !interface.address.is_link_local() &&
          (any || !leads_inside(interface.name)))
        return interface.address.host();
  return "127.0.0.1";
}

}  // namespace muster::comm::detail
