// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "loop/check.h"
#include "supervisor/rendezvous/meeting_file.h"

// What stands in the file where nodes meet: a note that can be read comes back as it was, and
// everything in it can be used as it is.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::optional<MeetingNote> note = read_meeting_note(input);
  if (!note) return 0;
  MUST(note->port > 0 && note->port < 65536 && !note->host.empty());
  const std::optional<MeetingNote> again = read_meeting_note(meeting_note_text(*note));
  MUST(again && again->port == note->port && again->addresses == note->addresses);
  MUST(again->host == note->host && again->run_id == note->run_id);
  return 0;
}
