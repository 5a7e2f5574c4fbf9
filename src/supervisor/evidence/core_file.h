// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace muster {

// Where the kernel left the memory of a process that died. `pattern` is the text of
// /proc/sys/kernel/core_pattern. Blocks.
//
// A file that is there is named by its path, what another program was given by how to get it
// ("coredumpctl info 4711"). "" if nothing was found, or several files that nothing tells apart.
// `folder` is where the process began to run, `since` (unix seconds) is when: an older file is
// another's. `same_pids`: `pid` is also its number on the machine (sees_machine_pids()).
std::string core_of(std::string_view pattern, int pid, bool same_pids, const std::string& folder,
                    int64_t since);

}  // namespace muster
