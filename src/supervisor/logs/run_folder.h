// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "loop/result.h"
#include "loop/unique_fd.h"

namespace muster {

// The folder of one run. Its lock says that the run lives; it goes with the process.
struct RunFolder {
  std::string path;  // absolute; empty: this run keeps no files
  std::string base;
  std::string name;
  bool in_default_base = false;
  UniqueFd lock;
};

// The folders under which runs without --log-dir have theirs, the likeliest first:
// $XDG_STATE_HOME/muster/runs, else ~/.local/state/muster/runs; $TMPDIR/muster-<uid>.
std::vector<std::string> default_run_bases();

// Makes `<base>/<run id>_<8 random characters>/`, readable by its owner alone. `log_dir` is the
// base; if it is empty the first default one that can be written is used; the null device means no
// files at all.
Result<RunFolder> make_run_folder(const std::string& log_dir, const std::string& run_id);

}  // namespace muster
