// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace muster {

// A completion script for `muster` and for `torchrun` where that is a link to it, made from the
// option table. `shell` is bash, zsh, tcsh or fish.
std::string completion_script(std::string_view shell);

}  // namespace muster
