// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "supervisor/rendezvous/round.h"

namespace muster {

// The victims of all nodes, folded by reason so that they stay few and short for any world size.
class VictimFold {
 public:
  // Those who are to blame are nobody's victims.
  explicit VictimFold(std::set<int> guilty) : guilty_(std::move(guilty)) {}

  // `ranks` as format_ranges writes them; whatever is outside of [first, first + count) is not this
  // node's to speak of and is left out.
  void add(const std::string& reason, std::string_view ranks, int first, int count);

  // In the order in which the reasons came; what is beyond kMaxVictimGroups is the last group.
  std::vector<event::VictimGroup> groups() const;

 private:
  std::set<int> guilty_;
  std::map<std::string, size_t> index_;
  std::vector<std::pair<std::string, std::vector<int>>> by_reason_;
};

}  // namespace muster
