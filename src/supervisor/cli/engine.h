// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "loop/result.h"
#include "supervisor/cli/environment.h"
#include "supervisor/cli/options.h"

namespace muster {

// What a batch system or an MPI launcher that started muster once on each of several nodes says in
// the environment.
struct Engine {
  std::string name;  // "Slurm job 123.0"
  int nodes = 1;
  int node = 0;
  std::string host;     // where node 0 is reached; "" if that is not said
  std::string no_host;  // why not, and what to give instead
  int port = 0;         // equal on all nodes, different from one job to the next
  std::string run_id;
};

// Lines to show at the start.
struct EngineChoice {
  std::vector<std::string> notes;
  std::vector<std::string> warnings;
};

// Fills in what `options` leave open from the environment of Open MPI, Slurm or a Kubernetes Job.
// What was given always wins: --standalone, --nnodes 1, and --nnodes together with where to meet
// turn it off, and so does being a worker's child. `host` is gethostname(). Pure. An Error's code
// is 2, its message a whole line.
Result<EngineChoice> take_engine(Options& options, const Environment& environment,
                                 const std::string& host);

// From kFirstEnginePort on, kEnginePorts of them: below what Linux gives to outgoing connections by
// default, above what well-known services use.
inline constexpr int kFirstEnginePort = 12'000;
inline constexpr int kEnginePorts = 20'000;

// An engine, several starts on one node that are jobs of their own (a warning), or neither.
struct EngineFound {
  std::optional<Engine> engine;
  std::string warning;
};

// The number that a variable holds, from 0 to 2^32 - 1.
std::optional<int64_t> lookup_number(const Environment& environment, std::string_view name);

}  // namespace muster
