// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace muster {

// Versions of the libraries that only this folder may include.
std::string libuv_version();
std::string llhttp_version();

}  // namespace muster
