// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/log_json.h"

#include "supervisor/status/rows.h"

namespace muster {

namespace {

// So long after a worker's end what is left in its pipes may still come.
constexpr int64_t kPipeTimeUs = 10'000'000;

}  // namespace

void write_line(JsonOut& out, const LogLine& line) {
  out.begin_list();
  out.value(line.offset);
  out.value(line.number);
  out.value(line.time_us);
  out.value(line.size);
  out.value(line.ended);
  out.value(line.text);
  if (line.skipped > 0) out.value(line.skipped);
  out.end_array();
}

void write_page(JsonOut& out, const ChosenLog& log, const LogPage& page, bool growing) {
  out.begin_object();
  out.field("attempt", log.attempt);
  out.field("rank", log.rank);
  out.field("stream", stream_name(log.stream));
  out.field("exists", page.exists);
  out.field("growing", growing);
  out.field("offset", page.offset);
  out.field("end", page.end);
  out.field("size", page.size);
  out.field("total_lines", page.total_lines);
  out.key("hole");
  if (page.hole_end > page.hole_begin) {
    out.begin_list();
    out.value(page.hole_begin);
    out.value(page.hole_end);
    out.end_array();
  } else {
    out.null();
  }
  out.key("lines");
  out.begin_array();
  for (const LogLine& line : page.lines)
    write_line(out, line);
  out.end_array();
  out.end_object();
}

bool may_grow(const JobSource& source, const ChosenLog& log) {
  const JobState& state = source.state();
  const AttemptState* current = state.current();
  // When another attempt has begun, or the job has ended, all pipes of this one were read.
  if (!source.live() || state.end || current == nullptr || current->attempt != log.attempt) {
    return false;
  }
  const RankState* rank = current->find(log.rank);
  if (rank == nullptr) return false;
  if (rank->phase == RankPhase::kPending || rank->phase == RankPhase::kRunning) return true;
  return unix_us(state, rank->ended_us) + kPipeTimeUs > view_of(source).now_us;
}

}  // namespace muster
