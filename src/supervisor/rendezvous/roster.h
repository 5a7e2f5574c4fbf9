// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>

#include "supervisor/rendezvous/round.h"

namespace muster {

// What the coordinator knows a node to be doing.
enum class Part {
  kWaiting,   // without workers: may be assigned (in a running attempt: a spare, or one to grow by)
  kClearing,  // not of the attempt, but still ends workers of an older one: must not be assigned
  kWorking,   // of the attempt, its workers may run
  kDone,      // of the attempt, nothing is left of its workers
  kHome,      // was told the end; its goodbye is awaited
};

struct Node {
  NodeFacts facts;
  std::string seen_address;
  std::string our_address;
  uint64_t order = 0;  // of joining
  Part part = Part::kWaiting;
  int clearing = -1;  // kClearing: the attempt whose workers it still has
  int settled = -1;   // the last attempt of which we know that nothing is left there
  int place = -1;     // GROUP_RANK in the last attempt that it was a member of
  int member = -1;    // the same in the attempt that runs, while kWorking or kDone
  JobEnd end;         // kHome: what it was told
};

// The nodes that are here, in the order in which they came. Owned by the coordinator, who alone
// changes what they do. Everything but walking over all of them is O(log n) at most, so that a
// storm of joiners costs O(n log n).
class Roster {
 public:
  Node* find(const std::string& id);
  Node& add(const NodeFacts& facts);
  void remove(const std::string& id);
  void set_part(Node& node, Part part);

  size_t size() const { return nodes_.size(); }
  size_t count(Part part) const { return counts_[static_cast<size_t>(part)]; }
  // Those that were not told the end.
  size_t staying() const { return size() - count(Part::kHome); }
  const Node* holder_of(int node_rank) const;  // null: free

  std::map<uint64_t, Node>& nodes() { return nodes_; }
  const std::map<uint64_t, Node>& nodes() const { return nodes_; }

 private:
  std::map<uint64_t, Node> nodes_;
  std::unordered_map<std::string, uint64_t> order_of_;
  std::unordered_map<int, uint64_t> ranks_;  // --node-rank -> who has it
  std::array<size_t, 5> counts_{};
  uint64_t next_order_ = 0;
};

}  // namespace muster
