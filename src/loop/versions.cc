// SPDX-License-Identifier: Apache-2.0
#include "loop/versions.h"

#include <llhttp.h>
#include <uv.h>

namespace muster {

std::string libuv_version() {
  return uv_version_string();
}

std::string llhttp_version() {
  return std::to_string(LLHTTP_VERSION_MAJOR) + "." + std::to_string(LLHTTP_VERSION_MINOR) + "." +
         std::to_string(LLHTTP_VERSION_PATCH);
}

}  // namespace muster
