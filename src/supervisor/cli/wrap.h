// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace muster {

// `text` as an option's description in --help: in lines of at most 80 columns, each indented.
std::string wrapped(std::string_view text);

}  // namespace muster
