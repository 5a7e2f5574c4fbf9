// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/random_hex.h"

#include <sys/random.h>

#include "loop/check.h"

namespace muster {

std::string random_hex(size_t bytes) {
  std::string raw(bytes, '\0');
  MUST(::getrandom(raw.data(), raw.size(), 0) == static_cast<ssize_t>(raw.size()));
  std::string text;
  for (unsigned char byte : raw)
    text.append({"0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]});
  return text;
}

}  // namespace muster
