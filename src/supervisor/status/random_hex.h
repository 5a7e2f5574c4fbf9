// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace muster {

// So many bytes that nobody can foresee, in hexadecimal.
std::string random_hex(size_t bytes);

}  // namespace muster
