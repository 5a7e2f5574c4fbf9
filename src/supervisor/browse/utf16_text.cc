// SPDX-License-Identifier: Apache-2.0
#include "supervisor/browse/utf16_text.h"

namespace muster {

namespace {

// The size of the character that `bytes` begin with, 0 if that is none.
size_t character_size(std::string_view bytes) {
  auto at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned lead = at(0);
  if (lead < 0x80) return 1;
  const size_t size = lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  if (size == 0 || size > bytes.size()) return 0;
  for (size_t i = 1; i < size; ++i)
    if ((at(i) & 0xc0) != 0x80) return 0;
  const bool overlong = (lead == 0xe0 && at(1) < 0xa0) || (lead == 0xf0 && at(1) < 0x90);
  const bool beyond = (lead == 0xed && at(1) >= 0xa0) || (lead == 0xf4 && at(1) >= 0x90);
  return overlong || beyond ? 0 : size;
}

}  // namespace

int64_t append_utf16_counted(std::string& text, std::string_view bytes) {
  int64_t units = 0;
  while (!bytes.empty()) {
    const size_t size = character_size(bytes);
    if (size == 0) {
      text += "\xEF\xBF\xBD";
    } else {
      text += bytes.substr(0, size);
    }
    bytes.remove_prefix(size == 0 ? 1 : size);
    units += size == 4 ? 2 : 1;
  }
  return units;
}

}  // namespace muster
