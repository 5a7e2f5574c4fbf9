// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "loop/result.h"
#include "supervisor/cli/command_options.h"

namespace re2 {
class RE2;
}

namespace muster {

// --grep for lines that come while they are followed; what is in the files already is searched by
// the run's server, with the same expressions.
class LineFilter {
 public:
  // The error says what is wrong with the expression.
  static Result<LineFilter> make(const CommandOptions& options);

  // Without an expression every line passes.
  bool passes(std::string_view line) const;

 private:
  std::shared_ptr<const re2::RE2> expression_;
};

}  // namespace muster
