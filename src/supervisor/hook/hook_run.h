// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

namespace muster {

// How much of what a hook writes is kept, for its last line.
inline constexpr size_t kHookOutput = 4096;

// Runs `command` in a shell, with `input` on its standard input, and waits for it; after `limit` it
// and its process group are killed. "" if it exited with 0, else what went wrong: "exited with code
// 3: no such channel". Blocks: for a process of its own (OwnChild).
std::string run_hook(const std::string& command, const std::string& input,
                     std::chrono::milliseconds limit);

}  // namespace muster
