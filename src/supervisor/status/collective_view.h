// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "supervisor/diagnosis/collectives.h"
#include "supervisor/status/json_out.h"
#include "supervisor/status/status_json.h"

namespace muster {

// Who keeps whom waiting in the operations of communicators: while the attempt runs as its workers
// tell now, afterwards as they told when it was ended.
event::CollectivesFound collectives_now(const StatusFacts& facts);

// A row; texts of at most `text` bytes, ranges of at most `ranges`.
void write_collective(JsonOut& out, const event::CollectiveFinding& finding, size_t text,
                      size_t ranges);

// What a rank is in, or was in last, as a row: {call, state, since_us}.
void write_operation(JsonOut& out, const RankSample& sample);

}  // namespace muster
