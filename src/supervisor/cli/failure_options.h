// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "supervisor/cli/option_table.h"

namespace muster {

// The part of the option table that is about failures and stopping.
std::vector<OptionSpec> failure_options();

}  // namespace muster
