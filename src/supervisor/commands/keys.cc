// SPDX-License-Identifier: Apache-2.0
#include "supervisor/commands/keys.h"

#include <array>
#include <utility>

namespace muster {

namespace {

// Longer ones first where one begins another.
constexpr std::array<std::pair<std::string_view, Key>, 22> kKeys = {{
    {"\033[5~", Key::kPageUp}, {"\033[6~", Key::kPageDown}, {"\033[1~", Key::kHome},
    {"\033[4~", Key::kEnd},    {"\033[A", Key::kUp},        {"\033[B", Key::kDown},
    {"\033[H", Key::kHome},    {"\033[F", Key::kEnd},       {"\033OA", Key::kUp},
    {"\033OB", Key::kDown},    {"\033OH", Key::kHome},      {"\033OF", Key::kEnd},
    {"k", Key::kUp},           {"j", Key::kDown},           {"b", Key::kPageUp},
    {" ", Key::kPageDown},     {"f", Key::kPageDown},       {"g", Key::kHome},
    {"G", Key::kEnd},          {"q", Key::kQuit},           {"Q", Key::kQuit},
    {"\x04", Key::kQuit},  // Ctrl-D
}};

// How long the sequence is that begins with ESC: skipped as a whole, so that no letter in it is
// taken for a key.
size_t unknown_sequence(std::string_view bytes) {
  if (bytes.size() < 2) return 1;
  if (bytes[1] != '[' && bytes[1] != 'O') return 2;
  size_t length = 2;
  while (length < bytes.size() && (bytes[length] < '@' || bytes[length] > '~'))
    ++length;
  return length < bytes.size() ? length + 1 : length;
}

}  // namespace

std::vector<Key> keys_in(std::string_view bytes) {
  std::vector<Key> keys;
  while (!bytes.empty()) {
    size_t length = 1;
    for (const auto& [sequence, key] : kKeys) {
      if (!bytes.starts_with(sequence)) continue;
      keys.push_back(key);
      length = sequence.size();
      break;
    }
    if (length == 1 && bytes[0] == '\033') length = unknown_sequence(bytes);
    bytes.remove_prefix(length);
  }
  return keys;
}

}  // namespace muster
