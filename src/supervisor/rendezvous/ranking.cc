// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/ranking.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace muster {

namespace {

// How many different worker counts are told apart in the warning.
constexpr size_t kMaxCountsNamed = 4;

void order_by_place(std::vector<Node*>& members) {
  std::vector<Node*> row;        // by place, null where it is vacant
  std::vector<Node*> newcomers;  // stay in the order that they have
  for (Node* node : members) {
    if (node->place < 0) {
      newcomers.push_back(node);
      continue;
    }
    const auto place = static_cast<size_t>(node->place);
    if (place >= row.size()) row.resize(place + 1);
    // Two claims to one place: the older node's holds.
    if (row[place] == nullptr) {
      row[place] = node;
    } else {
      newcomers.push_back(node);
    }
  }
  auto next = newcomers.begin();
  for (Node*& place : row) {
    if (place == nullptr && next != newcomers.end()) place = *next++;
  }
  row.insert(row.end(), next, newcomers.end());
  std::erase(row, nullptr);
  members = std::move(row);
}

}  // namespace

std::vector<Node*> choose_members(Roster& roster, const std::string& host_id, int max) {
  std::vector<Node*> members;
  for (auto& [order, node] : roster.nodes()) {
    if (node.part == Part::kWaiting) members.push_back(&node);
  }
  auto precedence = [&](const Node* node) {
    return std::make_tuple(node->facts.id != host_id, node->place < 0, node->order);
  };
  std::sort(members.begin(), members.end(),
            [&](const Node* a, const Node* b) { return precedence(a) < precedence(b); });
  if (members.size() > static_cast<size_t>(max)) members.resize(static_cast<size_t>(max));

  const bool all_ranked = std::all_of(members.begin(), members.end(), [](const Node* node) {
    return node->facts.node_rank.has_value();
  });
  if (all_ranked) {
    std::sort(members.begin(), members.end(), [](const Node* a, const Node* b) {
      return *a->facts.node_rank < *b->facts.node_rank;
    });
  } else {
    order_by_place(members);
  }
  return members;
}

std::vector<Assignment> number_ranks(const std::vector<Node*>& members) {
  std::vector<Assignment> assignments(members.size());
  std::map<std::string, int> of_role;
  int world_size = 0;
  for (size_t i = 0; i < members.size(); ++i) {
    const NodeFacts& facts = members[i]->facts;
    int& role_ranks = of_role[facts.role];
    assignments[i].node = static_cast<int>(i);
    assignments[i].node_count = static_cast<int>(members.size());
    assignments[i].first_rank = world_size;
    assignments[i].role_first_rank = role_ranks;
    world_size += facts.workers;
    role_ranks += facts.workers;
  }
  for (size_t i = 0; i < members.size(); ++i) {
    assignments[i].world_size = world_size;
    assignments[i].role_world_size = of_role[members[i]->facts.role];
  }
  return assignments;
}

std::vector<event::NodeSpan> spans_of(const std::vector<Node*>& members,
                                      const std::vector<Assignment>& assignments) {
  std::vector<event::NodeSpan> spans;
  spans.reserve(members.size());
  for (size_t i = 0; i < members.size(); ++i) {
    const NodeFacts& facts = members[i]->facts;
    spans.push_back(
        {assignments[i].node, facts.host, assignments[i].first_rank, facts.workers, facts.id});
  }
  return spans;
}

std::string uneven_text(const std::vector<Node*>& members) {
  struct Group {
    int workers = 0;
    std::string first_host;
    size_t nodes = 0;
  };
  std::map<int, Group> by_count;
  for (const Node* node : members) {
    Group& group = by_count[node->facts.workers];
    if (group.nodes++ == 0) group = {node->facts.workers, node->facts.host, 1};
  }
  if (by_count.size() < 2) return "";
  std::vector<Group> groups;
  groups.reserve(by_count.size());
  for (auto& [workers, group] : by_count)
    groups.push_back(std::move(group));
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Group& a, const Group& b) { return a.nodes > b.nodes; });
  std::string text = "nodes have different numbers of workers:";
  for (size_t i = 0; i < groups.size(); ++i) {
    if (i == kMaxCountsNamed) return text + ", ...";
    text +=
        (i > 0 ? ", " : " ") + std::to_string(groups[i].workers) + " on " + groups[i].first_host;
    if (groups[i].nodes > 1) text += " and " + std::to_string(groups[i].nodes - 1) + " more";
  }
  return text;
}

}  // namespace muster
