// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

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

// Makes `<base>/<run id>_<8 random characters>/`, readable by its owner alone. `log_dir` is the
// base; if it is empty the default one is used ($XDG_STATE_HOME/muster/runs, else
// ~/.local/state/muster/runs, and where that cannot be written $TMPDIR/muster-<uid>); the null
// device means no files at all.
Result<RunFolder> make_run_folder(const std::string& log_dir, const std::string& run_id);

}  // namespace muster
