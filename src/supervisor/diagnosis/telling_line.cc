// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "supervisor/diagnosis/rules.h"
#include "supervisor/diagnosis/text_lines.h"

namespace muster {

namespace {

constexpr size_t kLines = 6;  // that are looked at, from the end

bool looks_like_error(std::string_view line) {
  for (std::string_view word : {"rror", "ERROR", "atal", "FATAL", "panic", "ailed", "xception",
                                "bort", "annot ", "an't "}) {
    if (line.find(word) != std::string_view::npos) return true;
  }
  return false;
}

// The last line that looks like an error, else (on stderr, where little else is written) the last.
std::optional<FoundLine> telling_line(const std::vector<std::string>& lines, const char* source) {
  const bool is_stderr = std::string_view(source) == "stderr";
  std::optional<FoundLine> last;
  size_t left = kLines;
  for (size_t i = lines.size(); i-- > 0 && left > 0;) {
    if (is_blank(lines[i])) continue;
    --left;
    FoundLine line{lines[i], source, is_stderr ? i : std::string::npos};
    if (looks_like_error(lines[i])) return line;
    if (!last && is_stderr) last = std::move(line);
  }
  return last;
}

}  // namespace

std::optional<FoundLine> line_of_end(const Facts& facts) {
  if (!facts.last_word_lines.empty()) return facts.last_word_lines.front();
  if (facts.recorded_crash()) return FoundLine{facts.error_file->message, "error file"};
  if (facts.status.exit_code > 128 && facts.fault_dump) {
    const size_t at = facts.fault_dump->line;
    return FoundLine{facts.stderr_lines[at], "stderr", at};
  }
  if (facts.started() && facts.status.signal != 0) {
    if (!facts.evidence.kernel_lines.empty()) {
      return FoundLine{facts.evidence.kernel_lines.front(), "kernel log"};
    }
    return std::nullopt;
  }
  if (facts.recorded()) return FoundLine{facts.error_file->message, "error file"};
  if (auto line = telling_line(facts.stderr_lines, "stderr")) return line;
  return telling_line(facts.stdout_lines, "stdout");
}

}  // namespace muster
