// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "supervisor/rendezvous/coordinator.h"
#include "supervisor/rendezvous/roster.h"

namespace muster {

// "localhost", "127.0.0.1", "::1", "[::1]" and their like: names and addresses that lead every
// machine to itself. Text only; nothing is looked up.
bool is_loopback_host(std::string_view host);

// The address of the coordinator's node for all workers: its --local-addr, else the meeting point's
// host as it was written if that is no loopback name, else what the others reached it by (an
// address that means the same everywhere before one that does not), else what the settings know.
std::string host_address(const CoordinatorSettings& settings, const std::string& local_addr,
                         const std::vector<Node*>& members);

}  // namespace muster
