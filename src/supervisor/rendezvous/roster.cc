// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/roster.h"

#include "loop/check.h"

namespace muster {

Node* Roster::find(const std::string& id) {
  auto it = order_of_.find(id);
  return it == order_of_.end() ? nullptr : &nodes_.at(it->second);
}

Node& Roster::add(const NodeFacts& facts) {
  MUST(!order_of_.contains(facts.id));
  const uint64_t order = next_order_++;
  Node& node = nodes_[order];
  node.facts = facts;
  node.order = order;
  order_of_[facts.id] = order;
  if (facts.node_rank) {
    const bool was_free = ranks_.emplace(*facts.node_rank, order).second;
    MUST(was_free);
  }
  ++counts_[static_cast<size_t>(node.part)];
  return node;
}

void Roster::remove(const std::string& id) {
  auto it = order_of_.find(id);
  MUST(it != order_of_.end());
  const Node& node = nodes_.at(it->second);
  --counts_[static_cast<size_t>(node.part)];
  if (node.facts.node_rank) ranks_.erase(*node.facts.node_rank);
  nodes_.erase(it->second);
  order_of_.erase(it);
}

void Roster::set_part(Node& node, Part part) {
  --counts_[static_cast<size_t>(node.part)];
  node.part = part;
  ++counts_[static_cast<size_t>(node.part)];
}

const Node* Roster::holder_of(int node_rank) const {
  auto it = ranks_.find(node_rank);
  return it == ranks_.end() ? nullptr : &nodes_.at(it->second);
}

}  // namespace muster
