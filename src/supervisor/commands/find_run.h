// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "loop/result.h"

namespace muster {

// The folder of the run that the user means by `what`: its folder, a folder of runs (the newest in
// there), or the beginning of its id or of its folder's name in one of `bases`; "" is the newest in
// `bases`. The newest is the one that started last of those that live, else of all. The error says
// where was looked and what to do.
Result<std::string> find_run(const std::string& what, const std::vector<std::string>& bases);

}  // namespace muster
