// SPDX-License-Identifier: Apache-2.0
#include "supervisor/live_source.h"

#include <algorithm>
#include <utility>

#include "store/server.h"
#include "supervisor/hang/stall_watch.h"

namespace muster {

LiveSource::LiveSource(Loop& loop, Parts parts)
    : parts_(std::move(parts)),
      sampler_(loop,
               {[this]() -> const JobState& { return state(); }, parts_.logs, parts_.plan, kProc,
                [this](int local_rank) { return parts_.job.page(local_rank); },
                look_interval(parts_.plan.options.hang_timeout),
                [this](int local_rank) { return parts_.job.progress_file(local_rank); },
                [this](Clock::time_point since) { return parts_.saver.looked_since(since); }}) {
  if (parts_.run_dir.empty()) return;
  keeper_.emplace(
      loop, parts_.run_dir,
      SampleKeeper::Parts{
          [this]() -> const JobState& { return state(); }, [this] { return known_samples(); },
          [this](const std::string& message) { parts_.recorder.trouble("logs", message); }});
  sampler_.set_on_look([this] { keeper_->on_look(); });
}

void LiveSource::observe(const Event& event) {
  sampler_.observe(event);
  next_seq_ = event.seq + 1;
  recent_.push_back(event);
  if (recent_.size() > kRecentEvents) recent_.pop_front();
  if (observer_) observer_(event);
}

void LiveSource::set_observer(std::function<void(const Event&)> observer) {
  observer_ = std::move(observer);
}

std::vector<StoreWaiter> LiveSource::store_waiters() const {
  const StoreServer* store = parts_.link.store();
  return store ? store->waiters() : std::vector<StoreWaiter>();
}

std::optional<StoreCounters> LiveSource::store_counters() const {
  const StoreServer* store = parts_.link.store();
  return store ? std::optional(store->counters()) : std::nullopt;
}

std::vector<RankSample> LiveSource::own_samples() {
  return sampler_.samples();
}

void LiveSource::take_samples(int attempt, const std::vector<RankSample>& samples) {
  if (attempt < sampled_attempt_) return;
  if (std::exchange(sampled_attempt_, attempt) != attempt) from_others_.clear();
  for (const RankSample& sample : samples)
    from_others_[sample.rank] = sample;
}

std::vector<RankSample> LiveSource::samples() {
  look_again();
  return known_samples();
}

void LiveSource::look_again() {
  parts_.link.watch_samples();
  sampler_.refresh();
}

std::vector<RankSample> LiveSource::known_samples() {
  std::vector<RankSample> samples = sampler_.last_samples();
  const AttemptState* attempt = state().current();
  if (attempt == nullptr) return samples;
  if (attempt->attempt == sampled_attempt_) {
    samples.reserve(samples.size() + from_others_.size());
    for (const auto& [rank, sample] : from_others_) {
      const RankState* known = attempt->find(rank);
      if (known != nullptr && known->phase == RankPhase::kRunning) samples.push_back(sample);
    }
    std::sort(samples.begin(), samples.end(),
              [](const RankSample& a, const RankSample& b) { return a.rank < b.rank; });
  }
  if (const StoreServer* store = parts_.link.store())
    reported_.add(attempt->attempt, *store, samples);
  return samples;
}

bool LiveSource::forward(int attempt, int node, std::unique_ptr<HttpExchange>& exchange) {
  return parts_.link.forward(attempt, node, exchange);
}

std::string LiveSource::restart(const std::string& who) {
  return parts_.job.request_restart(who);
}

std::string LiveSource::dump(const std::string& who, OnDumped done) {
  return parts_.evidence.begin("asked by " + who, std::move(done));
}

std::string LiveSource::stop(const std::string& who, bool kill) {
  return parts_.job.request_stop(who, kill);
}

}  // namespace muster
