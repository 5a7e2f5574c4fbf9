// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "loop/result.h"
#include "supervisor/cli/options.h"
#include "supervisor/cli/rendezvous_plan.h"

namespace muster {

// Resolves options into how the nodes of the job meet; the token is not among them (cli/token.h).
// Pure: no name is looked up. An Error's code is 2, its message a whole line, ready to print.
Result<RendezvousPlan> plan_rendezvous(const Options& options);

// "n1:29500", "[::1]:29500", or the path of a file.
std::string meeting_point(const RendezvousPlan& plan);

}  // namespace muster
