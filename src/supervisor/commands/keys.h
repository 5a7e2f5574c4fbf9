// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

namespace muster {

enum class Key { kUp, kDown, kPageUp, kPageDown, kHome, kEnd, kQuit };

// The keys that a terminal sent, those that mean nothing here left out: arrows and their like, j
// and k, space, g and G, q.
std::vector<Key> keys_in(std::string_view bytes);

}  // namespace muster
