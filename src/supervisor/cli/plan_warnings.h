// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "supervisor/cli/options.h"
#include "supervisor/cli/rendezvous_plan.h"

namespace muster {

// One line for each option that was given and changes nothing in the chosen mode, and for a meeting
// point that other machines cannot reach.
std::vector<std::string> options_without_effect(const Options& options,
                                                const RendezvousPlan& rendezvous, int workers);

}  // namespace muster
