// SPDX-License-Identifier: Apache-2.0
#include "supervisor/browse/growth_watch.h"

namespace muster {

GrowthWatch::GrowthWatch(Loop& loop, const std::string& path, bool watchable,
                         std::function<void()> on_change) {
  std::string folder = path.substr(0, path.rfind('/') + 1);
  for (const std::string& place : {path, folder}) {
    if (!watchable || place.empty()) break;
    auto watch = FileWatch::start(loop, place, on_change);
    if (!watch) continue;
    watch_ = std::move(*watch);
    return;
  }
  timer_ = Timer::start(loop, kPeriod, std::move(on_change));
}

}  // namespace muster
