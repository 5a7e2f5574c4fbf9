// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/status/json_out.h"
#include "supervisor/status/status_json.h"

namespace muster {

// The parts of /status, used by status_json.cc: how much of each there may be, and the part about
// single ranks.

// Halved until the whole answer fits. Texts are in bytes.
struct StatusLimits {
  size_t text = 400;  // a line for people
  size_t name = 64;   // a host, an address
  size_t path = 512;
  size_t excerpt = 5'000;
  size_t excerpt_lines = 40;
  size_t ranges = 240;  // of ranks
  size_t other_failures = 8;
  size_t evidence_lines = event::kMaxEvidenceLines;
  size_t victims = 12;
  size_t past_stalls = 4;
  size_t saved = 4;  // folders of evidence
  size_t saved_groups = 8;
  size_t wait_groups = 12;
  size_t collectives = 16;
  size_t nodes = 16;
  size_t groups = 32;   // of ranks that look alike
  size_t notable = 16;  // of each kind

  StatusLimits divided_by(size_t by) const;
};

// The sample of each rank of an attempt; null where there is none.
class SamplesByRank {
 public:
  SamplesByRank(const AttemptState& attempt, const std::vector<RankSample>& samples);
  const RankSample* of(const RankState& rank) const;

 private:
  size_t first_rank_;
  std::vector<const RankSample*> at_;
};

// "counts", "progress", "ranks" and "groups".
void write_status_ranks(JsonOut& out, const StatusFacts& facts, const StatusLimits& limits,
                        const std::optional<RankList>& asked);

// "0-7,12,..." in at most `max` bytes.
std::string short_ranges(std::vector<int> ranks, size_t max);

// At most `max` bytes, without control characters.
std::string short_text(std::string_view text, size_t max);

// Seconds to a tenth.
double tenths(int64_t microseconds);

}  // namespace muster
