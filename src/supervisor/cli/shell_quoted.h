// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace muster {

// `word` so that a shell reads it as one word, quoted only if it has to be.
std::string shell_quoted(std::string_view word);

}  // namespace muster
