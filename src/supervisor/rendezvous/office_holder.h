// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

// What the office's key says: who is the coordinator, and where it listens.
struct OfficeHolder {
  std::string run_id;
  std::string agent_id;
  std::string host;                    // its machine's name, for people
  std::vector<std::string> addresses;  // literal, in the order in which to try them
  int port = 0;
  int term = 0;  // counts the campaigns of one agent, so that no two values are the same
};

inline constexpr size_t kMaxHolderText = 8192;
inline constexpr size_t kMaxHolderAddresses = 16;

std::string holder_text(const OfficeHolder& holder);

// Nothing if the text is not of this kind, or one of its addresses is none.
std::optional<OfficeHolder> parse_holder(std::string_view text);

}  // namespace muster
