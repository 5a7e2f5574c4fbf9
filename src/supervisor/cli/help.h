// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace muster {

// Texts made from the option table.

std::string usage_line();
std::string help_text();
std::string version_text();
std::string options_markdown();  // docs/options.md

}  // namespace muster
