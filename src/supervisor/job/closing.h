// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "loop/loop.h"
#include "loop/result.h"

namespace muster {

// A file that is written when a run ends.
struct ClosingFile {
  std::string path;
  std::string text;
};

// Writes `text` beside `path` and renames it into place, so that a reader sees the old file or the
// whole new one. Blocks.
Result<void> write_whole_file(const std::string& path, const std::string& text);

// Writes all files in the pool, then calls back in the loop with one message per file that could
// not be written.
void write_closing_files(Loop& loop, std::vector<ClosingFile> files,
                         std::function<void(std::vector<std::string> troubles)> on_done);

}  // namespace muster
