// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "loop/check.h"
#include "supervisor/diagnosis/diagnose.h"
#include "supervisor/diagnosis/text_lines.h"

// What a worker left: the first byte is its exit code, then stderr, NUL, its error file. Whatever
// it is, there is a verdict, and its text is fit for a report.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster;
  std::string_view input(reinterpret_cast<const char*>(data), size);
  if (input.empty()) return 0;
  Evidence evidence;
  evidence.pid = 1;
  evidence.wait_status = (data[0] & 0x7F) << 8;
  input.remove_prefix(1);
  size_t nul = input.find('\0');
  evidence.stderr_tail = input.substr(0, nul);
  if (nul != std::string_view::npos) {
    evidence.error_file_present = true;
    evidence.error_file_text = input.substr(nul + 1);
  }
  event::FailureFound failure = diagnose(evidence);
  MUST(!failure.kind.empty());
  MUST(!failure.message.empty());
  auto fit = [](std::string_view text) {
    return valid_utf8(text) == text && text.find_first_of("\n\x1b\x7f") == std::string_view::npos;
  };
  MUST(fit(failure.message));
  MUST(fit(failure.note));
  MUST(fit(failure.line));
  for (const std::string& line : failure.excerpt)
    MUST(fit(line));
  return 0;
}
