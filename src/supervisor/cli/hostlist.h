// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "loop/result.h"

namespace muster {

// More hosts than the largest machines have; a longer list is a slip or an attack.
inline constexpr size_t kMaxHosts = 65'536;

// A list of hosts as Slurm writes it: "n[1-4,7],gpu[001-010]-ib,login". A name may have several
// brackets, which count like the digits of a number, the last one fastest. Numbers keep their
// leading zeros. The message names the part that is wrong.
Result<std::vector<std::string>> expand_hostlist(std::string_view text);

}  // namespace muster
