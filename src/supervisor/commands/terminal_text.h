// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace muster {

// `text` with its colours and other attributes, and nothing else that a terminal would act on: no
// cursor movement, no title, no clipboard, no control byte but the tab.
std::string only_colours(std::string_view text);

// Whether what goes to `fd` may be coloured: a terminal that can, and a user who did not set
// NO_COLOR.
bool wants_colour(int fd);

}  // namespace muster
