// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "loop/check.h"
#include "supervisor/diagnosis/diagnose.h"
#include "supervisor/diagnosis/failure_rules.h"
#include "supervisor/diagnosis/text_lines.h"

// A file of --failure-rules, NUL, what a worker wrote on stderr. Whatever it is, there are rules or
// a readable problem, and with rules there is a verdict.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t nul = input.find('\0');
  const Result<FailureRules> rules = parse_failure_rules(input.substr(0, nul));
  auto fit = [](std::string_view text) {
    return valid_utf8(text) == text && text.find_first_of("\n\x1b\x7f") == std::string_view::npos;
  };
  if (!rules) {
    MUST(!rules.error().message.empty() && fit(rules.error().message));
    return 0;
  }
  Evidence evidence;
  evidence.own_rules = &*rules;
  if (nul != std::string_view::npos) evidence.stderr_tail = input.substr(nul + 1);
  for (const int wait_status : {3 << 8, 6}) {
    evidence.wait_status = wait_status;
    const event::FailureFound failure = diagnose(evidence);
    MUST(!failure.kind.empty());
    MUST(fit(failure.message) && fit(failure.line) && fit(failure.note) && fit(failure.blames));
  }
  return 0;
}
