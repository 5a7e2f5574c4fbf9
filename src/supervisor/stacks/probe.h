// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/workers/proc_fs.h"

namespace muster {

struct ProbeTarget {
  int rank = 0;
  int pid = 0;
  std::string recording{};  // where its flight recorder's dump goes, "" if that is nowhere
};

struct ProbeOrder {
  std::vector<ProbeTarget> targets;
  std::string folder;  // made by the probe; "": nothing is written
  std::string host;
  std::string why;
  std::string proc = kProc;
};

// Looks at each rank and writes its file, the quick and certain things of all ranks first. Tells
// what it has as soon as it has it, a line each, so that one that has to be killed has not worked
// for nothing. Runs in an OwnChild.
void run_probe(const ProbeOrder& order, const std::function<void(std::string_view line)>& tell);

// What those lines tell.
struct ProbeAnswer {
  bool wrote = false;                   // some file
  std::map<int, std::string> activity;  // by rank
  std::vector<std::string> troubles;

  void take(std::string_view line);
};

}  // namespace muster
