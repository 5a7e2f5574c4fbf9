// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/status_ranks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <unordered_set>

#include "supervisor/cli/ranges.h"
#include "supervisor/diagnosis/text_lines.h"
#include "supervisor/diagnosis/wait_status.h"
#include "supervisor/status/collective_view.h"
#include "supervisor/status/log_choice.h"
#include "supervisor/status/rows.h"

namespace muster {

namespace {

// Of a list that was cut those that are left.
RankList suspects_of(const event::StallFound& stall) {
  std::string_view ranks = stall.suspects;
  constexpr std::string_view kCut = ",...";
  if (ranks.ends_with(kCut)) ranks.remove_suffix(kCut.size());
  return parse_rank_list(ranks).value_or(RankList());
}

struct Part {
  const StatusFacts& facts;
  const AttemptState& attempt;
  SamplesByRank samples;
  RankList suspects;  // of the stall of now

  bool suspect(const RankState& rank) const { return in_rank_list(suspects, rank.rank); }
  RankShown shown(const RankState& rank) const { return rank_shown(facts.view, attempt, rank); }
  int64_t age_us(int64_t unix) const { return std::max<int64_t>(0, facts.view.now_us - unix); }
  // When it last said something, or began to say nothing.
  int64_t last_sign_us(const RankState& rank) const {
    const RankSample* sample = samples.of(rank);
    const int64_t started = unix_us(facts.view.state, rank.started_us);
    return sample ? std::max(sample->last_output_us, started) : started;
  }
};

// Fields that are not known are left out.
void write_measures(JsonOut& out, const RankSample& sample) {
  auto known = [&out](const char* name, auto number) {
    if (number >= 0) out.field(name, number);
  };
  known("cpu", std::round(sample.cpu * 100) / 100);
  known("rss_bytes", sample.rss_bytes);
  known("gpu", std::round(sample.gpu * 100) / 100);
  known("gpu_memory_bytes", sample.gpu_memory_bytes);
  known("step", sample.step);
  known("steps", sample.steps);
  known("steps_per_s", sample.steps_per_s);
  if (sample.loss) out.field("loss", *sample.loss);
  if (!sample.values.empty()) write_values(out, sample);
  if (!sample.operations) return;
  out.key("operation");
  write_operation(out, sample);
}

// Fields that are not known are left out.
void write_signs_of_life(JsonOut& out, const RankSample& sample, int64_t alive_ago_us) {
  if (sample.alive_us > 0) out.field("alive_s", tenths(alive_ago_us));
  if (sample.spins) out.field("spins", true);
  if (sample.state != 0) out.field("process_state", std::string_view(&sample.state, 1));
  if (!sample.wait_channel.empty()) out.field("wait_channel", short_text(sample.wait_channel, 64));
}

void write_rank_line(JsonOut& out, const Part& part, const RankState& rank, const char* notable) {
  const JobState& state = part.facts.view.state;
  const RankShown shown = part.shown(rank);
  const RankSample* sample = part.samples.of(rank);
  out.begin_row();
  out.field("rank", rank.rank);
  if (notable != nullptr) out.field("notable", notable);
  out.field("node", rank.node);
  out.field("host", short_text(host_of(part.attempt, rank), 64));
  if (rank.pid > 0) out.field("pid", rank.pid);
  out.field("state", name_of(shown));
  if (part.suspect(rank)) out.field("suspect", true);
  const int64_t since = shown == RankShown::kRunning ? rank.started_us : rank.ended_us;
  if (shown != RankShown::kPending && shown != RankShown::kLost)
    out.field("since_s", tenths(part.age_us(unix_us(state, since))));
  if (rank.phase == RankPhase::kExited) {
    const WaitStatus status = decode_wait_status(rank.wait_status);
    out.field("exit_code", status.exit_code);
    if (status.signal != 0) out.field("signal", signal_name(status.signal));
  }
  if (sample != nullptr && shown == RankShown::kRunning) {
    if (sample->last_output_us > 0)
      out.field("last_output_s", tenths(part.age_us(sample->last_output_us)));
    if (sample->heartbeat_us > 0)
      out.field("heartbeat_s", tenths(part.age_us(sample->heartbeat_us)));
    write_signs_of_life(out, *sample, part.age_us(sample->alive_us));
    write_measures(out, *sample);
  }
  out.end_object();
}

// Ranks that look alike.
struct Group {
  int node = -1;  // -1: of several
  RankShown shown = RankShown::kPending;
  std::vector<const RankState*> ranks;
};

std::vector<Group> group_ranks(const Part& part, bool by_node) {
  std::vector<Group> groups;
  std::map<std::pair<int, RankShown>, size_t> at;
  for (const RankState& rank : part.attempt.ranks) {
    const std::pair key(by_node ? rank.node : -1, part.shown(rank));
    const auto [found, fresh] = at.emplace(key, groups.size());
    if (fresh) groups.push_back({key.first, key.second, {}});
    groups[found->second].ranks.push_back(&rank);
  }
  return groups;
}

void write_group_measures(JsonOut& out, const Part& part, const Group& group) {
  double cpu = 0;
  int64_t rss = 0, oldest = 0, least = -1, most = -1;
  int with_cpu = 0;
  for (const RankState* rank : group.ranks) {
    const int64_t sign = part.last_sign_us(*rank);
    oldest = oldest == 0 ? sign : std::min(oldest, sign);
    const RankSample* sample = part.samples.of(*rank);
    if (sample == nullptr) continue;
    if (sample->cpu >= 0) {
      cpu += sample->cpu;
      ++with_cpu;
    }
    rss += std::max<int64_t>(0, sample->rss_bytes);
    if (sample->step < 0) continue;
    least = least < 0 ? sample->step : std::min(least, sample->step);
    most = std::max(most, sample->step);
  }
  out.field("silent_s", tenths(part.age_us(oldest)));
  if (with_cpu > 0) out.field("cpu_mean", std::round(100 * cpu / with_cpu) / 100);
  if (rss > 0) out.field("rss_bytes", rss);
  if (least >= 0) {
    out.field("step_min", least);
    out.field("step_max", most);
  }
}

void write_groups(JsonOut& out, const Part& part, const StatusLimits& limits) {
  std::vector<Group> groups = group_ranks(part, true);
  if (groups.size() > limits.groups) groups = group_ranks(part, false);
  for (const Group& group : groups) {
    std::vector<int> ranks;
    ranks.reserve(group.ranks.size());
    for (const RankState* rank : group.ranks)
      ranks.push_back(rank->rank);
    out.begin_row();
    out.field("ranks", short_ranges(std::move(ranks), limits.ranges));
    out.field("count", group.ranks.size());
    if (group.node >= 0) {
      out.field("node", group.node);
      out.field("host", short_text(host_of(part.attempt, *group.ranks.front()), limits.name));
    }
    out.field("state", name_of(group.shown));
    if (group.shown == RankShown::kRunning) write_group_measures(out, part, group);
    out.end_object();
  }
}

// Of a job that is too large to list: who failed, who is the suspect of a stall, who has been
// silent longest, who is behind.
class Notable {
 public:
  Notable(const Part& part, size_t limit) : part_(part), limit_(limit) {
    add_dead();
    add_suspects();
    add_silent();
    add_behind();
  }
  void write(JsonOut& out) const {
    for (const auto& [rank, why] : rows_)
      write_rank_line(out, part_, *rank, why);
  }

 private:
  using Value = std::pair<int64_t, const RankState*>;

  void add(const RankState& rank, const char* why) {
    if (seen_.insert(rank.rank).second) rows_.emplace_back(&rank, why);
  }

  void add_dead() {
    for (int dead : part_.attempt.death_order) {
      const RankState* rank = part_.attempt.find(dead);
      if (rank == nullptr || rows_.size() == limit_) continue;
      const RankShown shown = part_.shown(*rank);
      const bool failed = shown == RankShown::kFailed || shown == RankShown::kSpawnFailed;
      if (failed) add(*rank, "failed");
    }
  }

  void add_suspects() {
    size_t left = part_.suspects.empty() ? 0 : limit_;
    for (const RankState& rank : part_.attempt.ranks) {
      if (left == 0) break;
      if (!part_.suspect(rank)) continue;
      add(rank, "differs in the stall");
      --left;
    }
  }

  // The `count` with the least value.
  void add_least(std::vector<Value> values, size_t count, const char* why) {
    count = std::min(count, values.size());
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(count);
    std::partial_sort(values.begin(), middle, values.end(), [](const Value& a, const Value& b) {
      return std::pair(a.first, a.second->rank) < std::pair(b.first, b.second->rank);
    });
    for (auto value = values.begin(); value != middle; ++value)
      add(*value->second, why);
  }

  void add_silent() {
    std::vector<Value> values;
    for (const RankState& rank : part_.attempt.ranks) {
      const bool known = part_.samples.of(rank) != nullptr;
      if (known && part_.shown(rank) == RankShown::kRunning)
        values.emplace_back(part_.last_sign_us(rank), &rank);
    }
    add_least(std::move(values), limit_ / 2, "silent longest");
  }

  void add_behind() {
    std::vector<Value> values;
    int64_t most = -1;
    for (const RankState& rank : part_.attempt.ranks) {
      const RankSample* sample = part_.samples.of(rank);
      if (sample == nullptr || sample->step < 0) continue;
      if (part_.shown(rank) != RankShown::kRunning) continue;
      values.emplace_back(sample->step, &rank);
      most = std::max(most, sample->step);
    }
    std::erase_if(values, [most](const Value& value) { return value.first == most; });
    add_least(std::move(values), limit_ / 4, "furthest behind");
  }

  const Part& part_;
  size_t limit_;
  std::vector<std::pair<const RankState*, const char*>> rows_;
  std::unordered_set<int> seen_;
};

void write_counts(JsonOut& out, const Part& part) {
  const RankCounts counts = count_ranks(part.facts.view, part.attempt);
  out.key("counts");
  out.begin_row();
  for (size_t i = 0; i < kRankShownCount; ++i) {
    const auto shown = static_cast<RankShown>(i);
    if (counts[shown] > 0) out.field(name_of(shown), counts[shown]);
  }
  out.end_object();
}

void write_progress(JsonOut& out, const Part& part) {
  const RankSample* least = nullptr;
  const RankSample* most = nullptr;
  int reporting = 0;
  for (const RankState& rank : part.attempt.ranks) {
    const RankSample* sample = part.samples.of(rank);
    if (sample == nullptr || sample->step < 0) continue;
    ++reporting;
    if (least == nullptr || sample->step < least->step) least = sample;
    if (most == nullptr || sample->step > most->step) most = sample;
  }
  out.key("progress");
  if (least == nullptr) return out.null();
  out.begin_row();
  out.field("ranks", reporting);
  out.field("step", least->step);
  if (least->steps >= 0) out.field("steps", least->steps);
  if (least->step < most->step) {
    out.field("last_rank", least->rank);
    out.field("first_rank", most->rank);
    out.field("first_step", most->step);
  }
  if (least->steps_per_s >= 0) out.field("steps_per_s", least->steps_per_s);
  if (least->steps_per_s > 0 && least->steps >= least->step) {
    const double left = static_cast<double>(least->steps - least->step) / least->steps_per_s;
    out.field("left_s", std::round(left));
  }
  if (least->loss) out.field("loss", *least->loss);
  out.end_object();
}

}  // namespace

StatusLimits StatusLimits::divided_by(size_t by) const {
  StatusLimits less = *this;
  for (size_t* limit : {&less.text, &less.name, &less.path, &less.excerpt, &less.excerpt_lines,
                        &less.ranges, &less.other_failures, &less.evidence_lines, &less.victims,
                        &less.past_stalls, &less.saved, &less.saved_groups, &less.wait_groups,
                        &less.collectives, &less.nodes, &less.groups, &less.notable})
    *limit /= by;
  return less;
}

SamplesByRank::SamplesByRank(const AttemptState& attempt, const std::vector<RankSample>& samples)
    : first_rank_(attempt.ranks.empty() ? 0 : static_cast<size_t>(attempt.ranks.front().rank)),
      at_(attempt.ranks.size()) {
  for (const RankSample& sample : samples) {
    const size_t at = static_cast<size_t>(sample.rank) - first_rank_;
    if (at < at_.size()) at_[at] = &sample;
  }
}

const RankSample* SamplesByRank::of(const RankState& rank) const {
  return at_[static_cast<size_t>(rank.rank) - first_rank_];
}

void write_status_ranks(JsonOut& out, const StatusFacts& facts, const StatusLimits& limits,
                        const std::optional<RankList>& asked) {
  const AttemptState* attempt = facts.view.state.current();
  if (attempt == nullptr) {
    out.key("counts");
    out.begin_row();
    out.end_object();
    out.field("progress", std::optional<int>());
    for (const char* name : {"groups", "ranks"}) {
      out.key(name);
      out.begin_array();
      out.end_array();
    }
    return;
  }
  const event::StallFound* stall = stall_now(facts.view);
  const Part part{facts, *attempt, SamplesByRank(*attempt, facts.samples),
                  stall ? suspects_of(*stall) : RankList()};
  const bool folded = !asked && attempt->ranks.size() > kMaxFullRanks;
  write_counts(out, part);
  write_progress(out, part);
  out.key("groups");
  out.begin_array();
  if (folded) write_groups(out, part, limits);
  out.end_array();
  out.key("ranks");
  out.begin_array();
  if (folded) {
    Notable(part, limits.notable).write(out);
  } else if (asked) {
    for (const auto& [first, last] : *asked) {
      for (int rank = first; rank <= last; ++rank)
        write_rank_line(out, part, *attempt->find(rank), nullptr);
    }
  } else {
    for (const RankState& rank : attempt->ranks)
      write_rank_line(out, part, rank, nullptr);
  }
  out.end_array();
}

std::string short_ranges(std::vector<int> ranks, size_t max) {
  return cut_ranges(format_ranges(std::move(ranks)), max);
}

std::string short_text(std::string_view text, size_t max) {
  std::string line = clean_line(text);
  if (line.size() <= max) return line;
  size_t end = max;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80)
    --end;
  return line.substr(0, end) + "…";
}

double tenths(int64_t microseconds) {
  const int64_t whole = microseconds / 100'000;
  return static_cast<double>(whole) / 10;
}

}  // namespace muster
