// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string_view>
#include <utility>

#include "supervisor/browse/progress_line.h"

namespace muster {

// How far one worker is, over time: what its lines or its reports say, and the speed from the steps
// themselves where nobody tells it. Pure.
class ProgressTrack {
 public:
  void note(const Progress& news, int64_t time_us);
  const Progress& now() const { return now_; }

 private:
  static constexpr size_t kPoints = 8;  // of which the speed is made

  Progress now_;
  bool told_speed_ = false;
  std::deque<std::pair<int64_t, int64_t>> points_;  // when a step was first seen
};

// What the last lines of a stream say together. The first one may be a cut one.
Progress progress_in(std::string_view tail);

// A report of the worker itself, the value of the store's key "muster/progress/<rank>": JSON with
// any of "step", "steps", "steps_per_s" and "loss". What cannot be read says nothing.
Progress parse_report(std::string_view json);

// The key as clients of the store send it.
constexpr std::string_view kReportKey = "/muster/progress/";
constexpr size_t kMaxReport = 1024;

}  // namespace muster
