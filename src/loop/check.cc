// SPDX-License-Identifier: Apache-2.0
#include "loop/check.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace muster {

void check_failed(const char* file, int line, const char* expression) {
  std::fprintf(stderr, "muster: internal error: %s:%d: MUST(%s) failed (errno %d: %s)\n", file,
               line, expression, errno, std::strerror(errno));
  std::abort();
}

}  // namespace muster
