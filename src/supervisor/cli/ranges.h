// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

// {3, 0, 1, 2, 8} -> "0-3,8": how CPU lists and lists of ranks are written.
std::string format_ranges(std::vector<int> numbers, std::string_view separator = ",");

}  // namespace muster
