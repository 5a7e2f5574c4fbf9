// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/master_address.h"

#include <algorithm>
#include <cctype>

#include "supervisor/cli/rendezvous_options.h"

namespace muster {

namespace {

std::string lower(std::string_view text) {
  std::string low(text);
  std::transform(low.begin(), low.end(), low.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return low;
}

// 0: means the same on every machine; 1: a link-local address, whose zone is each machine's own;
// 2: loopback; 3: none.
int worth(const std::string& address) {
  if (address.empty()) return 3;
  if (is_loopback_host(address)) return 2;
  return lower(address).starts_with("fe80:") ? 1 : 0;
}

}  // namespace

std::string host_address(const CoordinatorSettings& settings, const std::string& local_addr,
                         const std::vector<Node*>& members) {
  if (!local_addr.empty()) return local_addr;
  const std::string& endpoint = settings.endpoint_host;
  if (!endpoint.empty() && !is_loopback_host(endpoint)) return endpoint;
  const std::string* best = nullptr;
  for (const Node* node : members) {
    if (worth(node->our_address) == 3) continue;
    if (best == nullptr || worth(node->our_address) < worth(*best)) best = &node->our_address;
  }
  if (best != nullptr) return *best;
  if (!settings.fallback_address.empty()) return settings.fallback_address;
  return endpoint.empty() ? "127.0.0.1" : endpoint;
}

}  // namespace muster
