// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "supervisor/rendezvous/coordinator.h"
#include "supervisor/rendezvous/roster.h"

namespace muster {

// The address of the coordinator's node for all workers: its --local-addr, else the meeting point's
// host as it was written if that is no loopback name, else what the others reached it by (an
// address that means the same everywhere before one that does not), else what the settings know.
std::string host_address(const CoordinatorSettings& settings, const std::string& local_addr,
                         const std::vector<Node*>& members);

}  // namespace muster
