// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "loop/loop.h"
#include "loop/result.h"
#include "supervisor/browse/indexed_log.h"
#include "supervisor/browse/log_reader.h"

namespace muster {

// The LogReader's followers. Each is counted in `followers` while it lives.
std::unique_ptr<LogReader::Follower> make_follower(Loop& loop, BrowseGate& gate,
                                                   std::shared_ptr<IndexedLog> log,
                                                   LogReader::FollowSettings settings,
                                                   std::shared_ptr<size_t> followers,
                                                   std::function<void(Result<LogPage>)> on_page);

// One that only tells why there is none.
std::unique_ptr<LogReader::Follower> refused_follower(Loop& loop, Error why,
                                                      std::function<void(Result<LogPage>)> on_page);

}  // namespace muster
