// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace muster {

// "SIGTERM" -> 15, as Python's signal module names them (SIGRTMIN and SIGRTMAX included); 0 if
// there is no such signal.
int signal_number(const std::string& name);

// The numbers of --signals-to-handle, unknown names left out (they are warned about elsewhere).
std::vector<int> signal_numbers(const std::vector<std::string>& names);

}  // namespace muster
