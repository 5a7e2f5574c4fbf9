// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/status/row_versions.h"
#include "supervisor/status/rows.h"

namespace muster {

// The data of the event stream's messages (docs/api.md). Pure.

// `seq` is the number of the next event. Of `events` those from `since` on, the newest of them.
std::string state_message(const JobView& view, int64_t seq, const std::deque<Event>& events);
std::string change_message(const JobView& view, int64_t seq, const RowVersions::Changes& changes,
                           const std::deque<Event>& events, int64_t since);
std::string samples_message(const std::vector<const RankSample*>& samples);

}  // namespace muster
