// SPDX-License-Identifier: Apache-2.0
#include "supervisor/commands/line_filter.h"

#include <re2/re2.h>

namespace muster {

Result<LineFilter> LineFilter::make(const CommandOptions& options) {
  LineFilter filter;
  if (options.grep.empty()) return filter;
  re2::RE2::Options how(re2::RE2::Quiet);
  how.set_literal(options.fixed);
  how.set_case_sensitive(!options.ignore_case);
  auto expression = std::make_shared<const re2::RE2>(options.grep, how);
  if (!expression->ok()) {
    return Error{0, "--grep '" + options.grep + "': " + expression->error()};
  }
  filter.expression_ = std::move(expression);
  return filter;
}

bool LineFilter::passes(std::string_view line) const {
  if (!expression_) return true;
  return re2::RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), *expression_);
}

}  // namespace muster
