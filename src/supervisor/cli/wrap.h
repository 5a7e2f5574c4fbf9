// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace muster {

// `text` as an option's description in --help: in lines of at most 80 columns, each indented.
std::string wrapped(std::string_view text);

// What stands above it: "-r, --redirects MAP". No short name is 0, no value "".
std::string option_heading(char short_name, std::string_view name, std::string_view value_name);

// `text` for a cell of a table in Markdown.
std::string table_cell(std::string_view text);

}  // namespace muster
