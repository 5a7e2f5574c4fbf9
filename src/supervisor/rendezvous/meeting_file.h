// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loop/result.h"
#include "loop/unique_fd.h"

namespace muster {

// The file on a shared file system at which the nodes of a job meet (c10d with store_type=file).
// Whoever holds its lock is the host and writes where it listens; the lock goes with its holder,
// however that ends, so that what nobody's lock vouches for is stale. Calls that touch the file may
// stall with the file system: they are for the pool.

// What the host writes.
struct MeetingNote {
  std::string run_id;
  std::string host;                    // as peers should call it; a name if there are no addresses
  std::vector<std::string> addresses;  // literal, in the order in which to try them
  int port = 0;
};

std::string meeting_note_text(const MeetingNote& note);

// Nothing if it is not a whole and valid note: it is being written, or is something else.
std::optional<MeetingNote> read_meeting_note(std::string_view text);

inline constexpr size_t kMaxMeetingNote = size_t{64} << 10;
inline constexpr size_t kMaxMeetingAddresses = 64;

struct MeetingFile {
  UniqueFd lock;        // set: we are the host, and the file is empty
  std::string content;  // the host's otherwise, at most kMaxMeetingNote
};

// Opens the file, making it if need be, and tries to take the lock. An Error's code tells whether
// it is worth trying again: meeting_file_may_heal().
Result<MeetingFile> open_meeting_file(const std::string& path);

bool meeting_file_may_heal(int code);

// Writes the note for all to see, on other machines too.
Result<void> write_meeting_note(const UniqueFd& lock, const std::string& path,
                                const std::string& text);

// Empties the file and lets go of the lock.
void leave_meeting_file(UniqueFd lock);

}  // namespace muster
