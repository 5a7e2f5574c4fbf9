// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "supervisor/cli/options.h"
#include "supervisor/cli/store_place.h"

namespace muster {

// One line for each option that was given and changes nothing in the chosen mode.
std::vector<std::string> options_without_effect(const Options& options, Meeting meeting,
                                                int workers);

}  // namespace muster
