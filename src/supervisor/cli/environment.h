// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

// Environment of a process as "NAME=value" lines, in the order in which it came.
using Environment = std::vector<std::string>;

// The process's own.
Environment current_environment();

// The value of `name`, the empty string included; nothing if it is not set.
std::optional<std::string> lookup(const Environment& environment, std::string_view name);

// Sets `name`, in place if it is there already, and removes later duplicates of it.
void set_variable(Environment& environment, std::string_view name, std::string_view value);

void remove_variable(Environment& environment, std::string_view name);

}  // namespace muster
