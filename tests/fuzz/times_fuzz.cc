// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "loop/check.h"
#include "loop/unique_fd.h"
#include "supervisor/browse/log_layout.h"
#include "supervisor/browse/log_times.h"
#include "supervisor/browse/progress_line.h"
#include "supervisor/logs/times_format.h"

namespace {

using namespace muster;

void check_entries(std::string_view block) {
  int64_t offset = -1, time = -1;
  for (const TimeEntry& entry : decode_times(block)) {
    MUST(entry.offset > offset && entry.time_us >= time);
    offset = entry.offset;
    time = entry.time_us;
  }
}

// Whatever the record says, parts follow each other in the stream and lie within the file.
void check_layout(const LogCut& cut, int64_t file_size) {
  LogLayout layout(cut, file_size);
  int64_t offset = 0;
  for (int parts = 0; auto part = layout.at(offset); ++parts) {
    MUST(parts < 3 && part->size > 0 && part->offset >= offset);
    MUST(part->place >= 0 && part->place + part->size <= file_size);
    MUST(part->offset == offset || layout.in_hole(offset));
    offset = part->offset + part->size;
  }
  MUST(offset <= layout.size());
}

}  // namespace

// The file of times, its first 8 bytes apart: a size and a place to ask for.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  uint32_t numbers[2] = {};
  if (size < sizeof numbers) return 0;
  std::memcpy(numbers, data, sizeof numbers);
  std::string_view bytes(reinterpret_cast<const char*>(data) + sizeof numbers,
                         size - sizeof numbers);
  check_entries(bytes);
  if (auto cut = decode_cut(bytes.substr(0, static_cast<size_t>(kTimesHead)))) {
    MUST(decode_cut(encode_cut(*cut)) == cut);
    check_layout(*cut, numbers[0]);
  }
  // As a record's fields are checked by a sum, make one of the bytes as well.
  LogCut made;
  std::memcpy(&made, bytes.data(), std::min(bytes.size(), sizeof made));
  if (auto cut = decode_cut(encode_cut(made))) check_layout(*cut, numbers[0]);

  static UniqueFd file(memfd_create("times", MFD_CLOEXEC));
  MUST(ftruncate(file.get(), 0) == 0);
  MUST(pwrite(file.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  LogTimes times(file.get());
  int64_t time = times.time_of(numbers[1]);
  MUST(time >= 0);
  times.first_since(time);
  muster::parse_progress(bytes);
  return 0;
}
