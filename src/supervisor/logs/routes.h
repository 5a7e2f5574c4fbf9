// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "loop/result.h"
#include "supervisor/cli/options.h"
#include "supervisor/job/event.h"

namespace muster {

// Where one stream of one worker goes.
struct StreamRoute {
  bool pipe = true;  // through us; otherwise the worker opens its file itself
  bool file = false;
  bool complete = false;  // the file was asked for: it is not bounded
  bool console = false;
  bool filter = false;  // seen by the duplicate filters
  bool raw = false;     // bytes to the console as they come
  std::string prefix;   // template, empty for none
};

struct WorkerRoutes {
  StreamRoute out, err;

  StreamRoute& of(Stream stream) { return stream == Stream::kStdout ? out : err; }
  const StreamRoute& of(Stream stream) const { return stream == Stream::kStdout ? out : err; }
};

// What the options and the TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE of the environment ask for, by
// local rank. `first_rank` is the global rank of local rank 0. Without files (`keep_files` false)
// everything goes to the console.
Result<std::vector<WorkerRoutes>> plan_routes(const Options& options, int workers, int first_rank,
                                              bool keep_files, const std::string& prefix_variable);

}  // namespace muster
