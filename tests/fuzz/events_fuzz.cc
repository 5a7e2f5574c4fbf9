// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "loop/check.h"
#include "supervisor/job/event_json.h"
#include "supervisor/job/report.h"
#include "supervisor/job/state.h"

// The lines of an events.jsonl that may be damaged: what can be read can be written, applied and
// shown, and the report keeps to its size.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster;
  std::string_view input(reinterpret_cast<const char*>(data), size);
  JobState state;
  while (!input.empty()) {
    size_t end = input.find('\n');
    Result<Event> event = event_from_json(input.substr(0, end));
    if (event) {
      Result<Event> again = event_from_json(event_to_json(*event));
      MUST(again);
      MUST(event_to_json(*again) == event_to_json(*event));
      apply(state, *event);
      (void)live_line(state, *event);
    }
    if (end == std::string_view::npos) break;
    input.remove_prefix(end + 1);
  }
  MUST(final_report(state, nullptr).size() <= kMaxReportLines);
  MUST(!summary_json(state).empty());
  return 0;
}
