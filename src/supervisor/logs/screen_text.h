// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace muster {

// The first `columns` columns of `text`, counting characters (UTF-8) and not escape sequences.
std::string_view clip_to_columns(std::string_view text, int columns);

// Without the escape sequences that would move the cursor into other ranks' lines or clear the
// screen. Colours and other attributes, erasing within the line, and links stay.
std::string without_cursor_moves(std::string_view text);

}  // namespace muster
