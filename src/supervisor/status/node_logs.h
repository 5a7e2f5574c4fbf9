// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "supervisor/status/log_choice.h"

namespace muster {

// Logs of one attempt that one other node has.
struct NodeLogs {
  int attempt = 0;
  int node = 0;
  std::string host;
  std::vector<int> ranks;
  std::vector<Stream> streams;

  // "attempt=0&ranks=8-15&streams=stdout,stderr": how they are asked for there.
  std::string query() const;
};

// Those of the logs that are not here, by attempt and node.
std::vector<NodeLogs> group_by_node(const std::vector<ChosenLog>& logs);

}  // namespace muster
