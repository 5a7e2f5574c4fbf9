// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "loop/loop.h"
#include "loop/result.h"
#include "supervisor/cli/plan.h"
#include "supervisor/rendezvous/discovery.h"
#include "supervisor/rendezvous/endpoint_discovery.h"
#include "supervisor/rendezvous/round.h"

namespace muster {

// How the nodes of this job find their coordinator. Fails for what no waiting heals: certificates
// that cannot be read.
Result<std::unique_ptr<Discovery>> make_discovery(Loop& loop, const LaunchPlan& plan,
                                                  const NodeFacts& facts, ListenAt listen,
                                                  Discovery::Callbacks callbacks);

}  // namespace muster
