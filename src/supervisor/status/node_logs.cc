// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/node_logs.h"

#include <algorithm>
#include <map>

#include "supervisor/cli/ranges.h"

namespace muster {

std::string NodeLogs::query() const {
  std::string names;
  for (const Stream stream : streams)
    names.append(names.empty() ? "" : ",").append(stream_name(stream));
  return "attempt=" + std::to_string(attempt) + "&ranks=" + format_ranges(ranks) +
         "&streams=" + names;
}

std::vector<NodeLogs> group_by_node(const std::vector<ChosenLog>& logs) {
  std::vector<NodeLogs> groups;
  std::map<std::pair<int, int>, size_t> places;
  for (const ChosenLog& log : logs) {
    if (log.here) continue;
    const auto [place, is_new] = places.try_emplace({log.attempt, log.node}, groups.size());
    if (is_new) groups.push_back({log.attempt, log.node, log.host, {}, {}});
    NodeLogs& group = groups[place->second];
    if (group.ranks.empty() || group.ranks.back() != log.rank) group.ranks.push_back(log.rank);
    if (std::find(group.streams.begin(), group.streams.end(), log.stream) == group.streams.end())
      group.streams.push_back(log.stream);
  }
  return groups;
}

}  // namespace muster
