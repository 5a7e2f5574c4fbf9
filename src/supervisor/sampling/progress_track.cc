// SPDX-License-Identifier: Apache-2.0
#include "supervisor/sampling/progress_track.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace muster {

namespace {

constexpr double kMaxStep = 9e15;  // what a double holds exactly

int64_t step_in(const nlohmann::json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number()) return -1;
  const auto number = found->get<double>();
  return number >= 0 && number <= kMaxStep ? static_cast<int64_t>(number) : -1;
}

}  // namespace

void ProgressTrack::note(const Progress& news, int64_t time_us) {
  const int64_t before = now_.step;
  now_.update(news);
  if (news.steps_per_s >= 0) told_speed_ = true;
  if (news.step < 0 || now_.step == before) return;
  // Another epoch or another attempt counts from the start.
  if (now_.step < before) points_.clear();
  points_.emplace_back(time_us, now_.step);
  if (points_.size() > kPoints) points_.pop_front();
  const auto [first_us, first_step] = points_.front();
  if (told_speed_ || points_.size() < 2 || time_us <= first_us) return;
  now_.steps_per_s =
      static_cast<double>(now_.step - first_step) / (static_cast<double>(time_us - first_us) / 1e6);
}

Progress progress_in(std::string_view tail) {
  Progress all;
  while (!tail.empty()) {
    const size_t end = tail.find('\n');
    const Progress one = parse_progress(tail.substr(0, end));
    if (one.any()) all.update(one);
    if (end == std::string_view::npos) break;
    tail.remove_prefix(end + 1);
  }
  return all;
}

Progress parse_report(std::string_view text) {
  Progress progress;
  if (text.size() > kMaxReport) return progress;
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return progress;
  progress.step = step_in(json, "step");
  progress.steps = step_in(json, "steps");
  if (const auto speed = json.find("steps_per_s"); speed != json.end() && speed->is_number()) {
    const auto number = speed->get<double>();
    if (std::isfinite(number) && number >= 0) progress.steps_per_s = number;
  }
  if (const auto loss = json.find("loss"); loss != json.end() && loss->is_number())
    progress.loss = loss->get<double>();
  return progress;
}

}  // namespace muster
