// SPDX-License-Identifier: Apache-2.0
#include "supervisor/commands/log_merge.h"

#include <algorithm>
#include <queue>
#include <utility>

namespace muster {

std::vector<size_t> LogMerge::needs() const {
  std::vector<size_t> needed;
  for (size_t i = 0; i < logs_.size(); ++i) {
    if (logs_[i].lines.empty() && !logs_[i].ended) needed.push_back(i);
  }
  return needed;
}

void LogMerge::add(size_t log, std::vector<ShownLine> lines) {
  Log& to = logs_[log];
  for (ShownLine& line : lines) {
    // A clock that was set back must not hold the lines of others up.
    to.last_us = std::max(to.last_us, line.time_us);
    to.lines.push_back({to.last_us, std::move(line)});
  }
}

std::vector<ShownLine> LogMerge::take() {
  using Next = std::pair<int64_t, size_t>;  // time and log: of equal times the first log's
  std::priority_queue<Next, std::vector<Next>, std::greater<>> order;
  for (size_t i = 0; i < logs_.size(); ++i) {
    if (!logs_[i].lines.empty()) order.emplace(logs_[i].lines.front().time_us, i);
    // Its next line could be the first.
    if (logs_[i].lines.empty() && !logs_[i].ended) return {};
  }
  std::vector<ShownLine> taken;
  while (!order.empty()) {
    const size_t i = order.top().second;
    order.pop();
    Log& log = logs_[i];
    taken.push_back(std::move(log.lines.front().line));
    log.lines.pop_front();
    if (!log.lines.empty()) {
      order.emplace(log.lines.front().time_us, i);
    } else if (!log.ended) {
      break;
    }
  }
  return taken;
}

bool LogMerge::done() const {
  return std::all_of(logs_.begin(), logs_.end(),
                     [](const Log& log) { return log.ended && log.lines.empty(); });
}

}  // namespace muster
