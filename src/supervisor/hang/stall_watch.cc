// SPDX-License-Identifier: Apache-2.0
#include "supervisor/hang/stall_watch.h"

#include <algorithm>
#include <chrono>
#include <unordered_set>
#include <utility>

#include "supervisor/cli/ranges.h"
#include "supervisor/hang/stall_facts.h"
#include "supervisor/hang/stall_stacks.h"
#include "supervisor/job/rank_ranges.h"

namespace muster {

namespace {

constexpr Milliseconds kMostOften{1'000};
constexpr Milliseconds kLeastOften{10'000};
constexpr int kLooksInTime = 8;
// So much oftener when half of the threshold has gone by.
constexpr int kHaste = 5;
// Of other nodes' samples, which come every ten seconds and a little later.
constexpr Milliseconds kFresh{25'000};
constexpr size_t kMaxRanges = 240;
// What a look sees that comes later began after workers were asked for evidence.
constexpr Milliseconds kAfterwards{2'000};

int64_t unix_now_us() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

std::string ranges_text(const std::vector<int>& ranks) {
  return cut_ranges(format_ranges(ranks), kMaxRanges);
}

}  // namespace

Milliseconds look_interval(Milliseconds hang_timeout) {
  if (hang_timeout.count() <= 0) return kLeastOften;
  return std::clamp(hang_timeout / kLooksInTime, kMostOften, kLeastOften);
}

StallWatch::StallWatch(Loop& loop, Milliseconds hang_timeout, Parts parts)
    : loop_(loop),
      threshold_(hang_timeout),
      every_(look_interval(hang_timeout)),
      parts_(std::move(parts)) {}

void StallWatch::observe(const Event& event) {
  if (std::holds_alternative<event::JobEnded>(event.body)) {
    timer_.reset();
    doubt_.reset();
  } else if (std::holds_alternative<event::AttemptStarted>(event.body)) {
    seen_.reset();
    doubt_.reset();
    if (threshold_.count() > 0 && !timer_) arm();
  }
}

void StallWatch::arm() {
  const Milliseconds wait = hurries_ ? std::max(kMostOften, every_ / kHaste) : every_;
  timer_ = Timer::start(loop_, wait, [this] {
    look();
    arm();
  });
  timer_->unref();
}

void StallWatch::look() {
  const JobState& state = parts_.state();
  const AttemptState* attempt = state.current();
  hurries_ = false;
  if (attempt == nullptr || state.phase != Phase::kRunning || !parts_.hosting()) return;
  const std::vector<RankSample> samples = parts_.samples();
  const std::vector<StoreWaiter> waiters = parts_.store_waiters();
  const auto us = [](Milliseconds time) { return std::chrono::microseconds(time).count(); };
  std::vector<RankSigns> signs;
  const StallFacts facts = stall_facts(
      {state, samples, waiters, unix_now_us(), Clock::now(), us(threshold_), us(kFresh)}, signs);
  hurries_ = doubt_ || wants_haste(*attempt, signs);
  if (hurries_) parts_.hurry();
  std::optional<Stall> stall = find_stall(facts);
  if (!stall) {
    if (seen_) end(signs);
    return;
  }
  const bool same =
      seen_ && seen_->stall.kind == stall->kind && seen_->stall.suspects == stall->suspects;
  if (!same) begin(std::move(*stall), attempt->attempt);
  resolve_doubt(signs, samples);
}

void StallWatch::confirm(std::function<void()> done) {
  if (!seen_) return;
  doubt_ = Doubt{unix_now_us() + std::chrono::microseconds(kAfterwards).count(), std::move(done)};
  parts_.hurry();
}

void StallWatch::resolve_doubt(const std::vector<RankSigns>& signs,
                               const std::vector<RankSample>& samples) {
  if (!doubt_) return;
  std::unordered_set<int> looked;
  for (const RankSample& sample : samples)
    if (sample.time_us > doubt_->since_us) looked.insert(sample.rank);
  const bool all = std::all_of(signs.begin(), signs.end(), [&](const RankSigns& one) {
    return !one.running || looked.contains(one.rank);
  });
  if (!all) return;
  const std::function<void()> done = std::move(doubt_->done);
  doubt_.reset();
  done();
}

// Where looks are rare they get oftener when it may be about to stand still. Other nodes tell what
// they see every ten seconds unless asked for more.
bool StallWatch::wants_haste(const AttemptState& attempt,
                             const std::vector<RankSigns>& signs) const {
  if (attempt.node_count > 1 && every_ < kLeastOften) return true;
  return std::all_of(signs.begin(), signs.end(), [this](const RankSigns& one) {
    return !one.running || (one.known && std::chrono::microseconds(one.quiet_us) > threshold_ / 2);
  });
}

// One that looks another way now is another one, but not another reason to act.
void StallWatch::begin(Stall stall, int attempt) {
  const bool first = !seen_;
  const int64_t since_us = seen_ ? seen_->since_us : unix_now_us() - stall.quiet_us;
  const int told = seen_ ? seen_->told : 0;
  seen_ = Seen{attempt, std::move(stall), since_us};
  const Stall found = seen_->stall;
  seen_->told = told;
  tell(found);
  if (first && parts_.on_stall) parts_.on_stall(found);
}

void StallWatch::tell(const Stall& stall) {
  if (seen_->told >= kMaxTold) return;
  ++seen_->told;
  parts_.record(event::StallFound{seen_->attempt, stall.kind, ranges_text(stall.suspects),
                                  ranges_text(stall.waiting), seen_->since_us, stall.text});
}

// What is seen from outside stays what it was, so that the next look finds nothing new.
Stall StallWatch::look_closer(const std::vector<event::EvidenceSaved>& saved) {
  const AttemptState* attempt = parts_.state().current();
  if (!seen_ || attempt == nullptr) return {};
  Stall stall = told_by_stacks(seen_->stall, *attempt, saved);
  if (stall.suspects != seen_->stall.suspects) tell(stall);
  return stall;
}

void StallWatch::end(const std::vector<RankSigns>& signs) {
  std::vector<int> alive;
  for (const RankSigns& one : signs) {
    const auto quiet = std::chrono::microseconds(one.quiet_us);
    if (one.running && one.known && quiet < threshold_) alive.push_back(one.rank);
  }
  std::string how = "ranks have ended";
  if (!alive.empty()) {
    how = cut_ranges(rank_ranges(alive), kMaxRanges) + (alive.size() == 1 ? " goes on" : " go on");
  }
  doubt_.reset();
  const Seen seen = *std::exchange(seen_, std::nullopt);
  parts_.record(event::StallOver{seen.attempt, unix_now_us() - seen.since_us, how});
}

}  // namespace muster
