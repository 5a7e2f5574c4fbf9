// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/metrics.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "supervisor/diagnosis/text_lines.h"
#include "supervisor/job/event_json.h"
#include "supervisor/status/collective_view.h"
#include "supervisor/status/rows.h"

namespace muster {

namespace {

constexpr size_t kMaxLabel = 128;  // bytes of a label's value
constexpr size_t kMaxKinds = 100;  // of failures, users' own rules among them

// As the format wants it: backslash, quote and newline escaped, valid UTF-8.
std::string label_value(std::string_view text) {
  std::string escaped;
  for (char c : clean_line(text)) {
    if (c == '\\' || c == '"') escaped += '\\';
    escaped += c;
  }
  if (escaped.size() <= kMaxLabel) return escaped;
  return valid_utf8(std::string_view(escaped).substr(0, kMaxLabel - 8)) + "...";
}

class Metrics {
 public:
  explicit Metrics(std::string& to) : to_(to) {}

  void family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    to_.append("# HELP ").append(name).append(" ").append(help).append("\n");
    to_.append("# TYPE ").append(name).append(" ").append(type).append("\n");
  }
  // `labels` is what stands between the braces.
  void value(double number, std::string_view labels = "") {
    to_ += name_;
    if (!labels.empty()) to_.append("{").append(labels).append("}");
    char digits[40];
    const auto end = std::to_chars(digits, digits + sizeof digits, number);
    to_ += ' ';
    std::isfinite(number) ? to_.append(digits, end.ptr) : to_.append("NaN");
    to_ += '\n';
  }
  void gauge(std::string_view name, std::string_view help, double number) {
    family(name, "gauge", help);
    value(number);
  }
  void counter(std::string_view name, std::string_view help, double number) {
    family(name, "counter", help);
    value(number);
  }

 private:
  std::string& to_;
  std::string_view name_;
};

double seconds(int64_t microseconds) {
  return static_cast<double>(microseconds) / 1'000'000;
}

void write_info(Metrics& metrics, const JobView& view) {
  const event::JobStarted& job = view.state.job;
  metrics.family("muster_info", "gauge", "Which run this is; always 1.");
  metrics.value(1, std::string("version=\"") + MUSTER_VERSION + "\",run_id=\"" +
                       label_value(job.run_id) + "\",host=\"" + label_value(job.host) +
                       "\",program=\"" + label_value(job.program) + "\"");
}

void write_job_metrics(Metrics& metrics, const JobView& view) {
  const JobState& state = view.state;
  metrics.family("muster_job_phase", "gauge", "1 for the phase that the job is in.");
  constexpr std::array<std::string_view, 7> kPhases = {
      "starting", "waiting", "running", "stalled", "stopping", "restarting", "ended"};
  for (std::string_view phase : kPhases)
    metrics.value(phase == phase_name(view) ? 1 : 0, "phase=\"" + std::string(phase) + "\"");
  metrics.family("muster_job_outcome", "gauge", "1 for how the job ended, 0 while it runs.");
  for (Outcome outcome : {Outcome::kSucceeded, Outcome::kFailed, Outcome::kStopped}) {
    metrics.value(state.end && state.end->outcome == outcome ? 1 : 0,
                  "outcome=\"" + std::string(outcome_name(outcome)) + "\"");
  }
  metrics.gauge("muster_job_start_time_seconds", "Unix time at which the job started.",
                seconds(unix_us(state, 0)));
  metrics.gauge("muster_job_world_size", "Ranks of all nodes; 0 until they have met.",
                state.job.world_size);
  metrics.counter("muster_job_restarts_total", "Restarts charged to the budget.",
                  state.restarts_used);
  metrics.gauge("muster_job_restarts_max", "Restarts that the job may use.",
                state.job.max_restarts);
  double failures = 0;
  for (const AttemptState& attempt : state.attempts)
    failures += static_cast<double>(attempt.root_cause ? attempt.other_causes.size() + 1 : 0);
  metrics.counter("muster_job_failures_total", "Failures found, of all attempts.", failures);
  metrics.counter("muster_job_attempts_total", "Attempts started.",
                  static_cast<double>(state.attempts.size()));
  metrics.counter("muster_job_troubles_total", "Troubles that are not a worker's.",
                  static_cast<double>(state.troubles.size()));
}

// What an alarm asks: since when nothing moves, and what the failures were.
void write_troubled(Metrics& metrics, const JobView& view) {
  const event::StallFound* stall = stall_now(view);
  metrics.gauge("muster_job_stalled_seconds",
                "For how long the job has made no progress; 0 while it makes some.",
                stall ? seconds(std::max<int64_t>(1, view.now_us - stall->since_us)) : 0);
  const int64_t due_us = restart_due_us(view).value_or(view.now_us);
  metrics.gauge("muster_job_restart_delay_seconds",
                "How much longer a restart that is due is put off.",
                seconds(std::max<int64_t>(0, due_us - view.now_us)));
  std::map<std::string, double> kinds;
  for (const AttemptState& attempt : view.state.attempts)
    if (attempt.root_cause) ++kinds[attempt.root_cause->kind];
  if (kinds.empty()) return;
  metrics.family("muster_job_root_causes_total", "counter", "Failed attempts by kind of failure.");
  size_t told = 0;
  for (const auto& [kind, count] : kinds)
    if (told++ < kMaxKinds) metrics.value(count, "kind=\"" + label_value(kind) + "\"");
}

void write_nodes(Metrics& metrics, const JobView& view) {
  double here = 0, lost = 0, spare = 0;
  for (const NodeRow& row : node_rows(view)) {
    const bool gone = row.node && row.node->lost;
    (gone ? lost : row.node && row.node->joined.spare ? spare : here) += 1;
  }
  metrics.family("muster_nodes", "gauge", "Nodes by what they are.");
  metrics.value(here, "state=\"here\"");
  metrics.value(spare, "state=\"spare\"");
  metrics.value(lost, "state=\"lost\"");
}

void write_store(Metrics& metrics, const StatusFacts& facts) {
  if (!facts.store) return;
  const StoreCounters& store = *facts.store;
  metrics.gauge("muster_store_connections", "Open connections of the store.",
                static_cast<double>(store.connections));
  metrics.gauge("muster_store_keys", "Values in the store.", static_cast<double>(store.keys));
  metrics.gauge("muster_store_size_bytes", "Keys, values and queues of the store.",
                static_cast<double>(store.bytes));
  metrics.gauge("muster_store_waiters", "Connections that wait for keys.",
                static_cast<double>(store.waiters));
  double longest = 0;
  for (const StoreWaiter& waiter : facts.waiters) {
    longest = std::max(longest, std::chrono::duration<double>(facts.now - waiter.since).count());
  }
  metrics.gauge("muster_store_longest_wait_seconds", "The longest wait that goes on.", longest);
  metrics.counter("muster_store_requests_total", "Requests of the store's clients.",
                  static_cast<double>(store.requests));
  metrics.counter("muster_store_connections_total", "Connections that the store accepted.",
                  static_cast<double>(store.accepted));
  metrics.counter("muster_store_bad_peers_total", "Connections closed for what they sent.",
                  static_cast<double>(store.bad_peers));
}

void write_rank_states(Metrics& metrics, const JobView& view, const AttemptState* attempt) {
  const RankCounts counts = attempt ? count_ranks(view, *attempt) : RankCounts();
  metrics.family("muster_ranks", "gauge", "Ranks of the current attempt by state.");
  for (size_t i = 0; i < kRankShownCount; ++i) {
    const auto shown = static_cast<RankShown>(i);
    metrics.value(counts[shown], "state=\"" + std::string(name_of(shown)) + "\"");
  }
}

// One measure of every rank that has it. What a rank does not tell makes no series.
struct Measure {
  const char* name;
  const char* help;
  double (*of)(const RankSample& sample);  // negative: not known
};
constexpr Measure kMeasures[] = {
    {"muster_rank_cpu_cores", "Cores in use by the rank and its descendants.",
     [](const RankSample& sample) { return sample.cpu; }},
    {"muster_rank_resident_memory_bytes", "Memory of the rank and its descendants.",
     [](const RankSample& sample) { return static_cast<double>(sample.rss_bytes); }},
    {"muster_rank_last_output_timestamp_seconds", "Unix time of its last output.",
     [](const RankSample& sample) {
       return sample.last_output_us > 0 ? seconds(sample.last_output_us) : -1.0;
     }},
    {"muster_rank_gpu_utilization_ratio", "Use of its GPU, 0 to 1.",
     [](const RankSample& sample) { return sample.gpu; }},
    {"muster_rank_gpu_memory_bytes", "Memory in use on its GPU.",
     [](const RankSample& sample) { return static_cast<double>(sample.gpu_memory_bytes); }},
    {"muster_rank_step", "The step that it reports or prints.",
     [](const RankSample& sample) { return static_cast<double>(sample.step); }},
    {"muster_rank_alive_timestamp_seconds", "Unix time of its last sign of life.",
     [](const RankSample& sample) {
       return sample.alive_us > 0 ? seconds(sample.alive_us) : -1.0;
     }},
    {"muster_rank_heartbeat_timestamp_seconds", "Unix time of its last report or heartbeat.",
     [](const RankSample& sample) {
       return sample.heartbeat_us > 0 ? seconds(sample.heartbeat_us) : -1.0;
     }},
};

// Its names are the worker's; of a large job they would be too many series.
void write_named_values(Metrics& metrics, const std::vector<RankSample>& samples) {
  if (samples.size() > kMaxMetricRanks) return;
  bool begun = false;
  for (const RankSample& sample : samples) {
    for (const auto& [name, value] : sample.values) {
      if (!std::exchange(begun, true)) {
        metrics.family("muster_rank_value", "gauge", "A number that the rank reports by a name.");
      }
      metrics.value(
          value, "rank=\"" + std::to_string(sample.rank) + "\",name=\"" + label_value(name) + "\"");
    }
  }
}

void write_collectives(Metrics& metrics, const event::CollectivesFound& collectives) {
  double longest = 0;
  for (const event::CollectiveFinding& finding : collectives.found)
    longest = std::max(longest, seconds(finding.waited_us));
  metrics.gauge("muster_collective_findings",
                "Operations of communicators in which ranks are kept waiting.",
                static_cast<double>(collectives.found.size()) + collectives.left_out);
  metrics.gauge("muster_collective_longest_wait_seconds", "The longest wait among them.", longest);
}

void write_measures(Metrics& metrics, const std::vector<RankSample>& samples) {
  const bool one_by_one = samples.size() <= kMaxMetricRanks;
  for (const Measure& measure : kMeasures) {
    double least = 0, most = 0, sum = 0, known = 0;
    for (const RankSample& sample : samples) {
      const double value = measure.of(sample);
      if (value < 0) continue;
      if (known == 0 && one_by_one) metrics.family(measure.name, "gauge", measure.help);
      least = known == 0 ? value : std::min(least, value);
      most = std::max(most, value);
      sum += value;
      known += 1;
      if (one_by_one) metrics.value(value, "rank=\"" + std::to_string(sample.rank) + "\"");
    }
    if (one_by_one || known == 0) continue;
    const std::string name = "muster_ranks" + std::string(measure.name).substr(11);
    metrics.family(name, "gauge", measure.help);
    metrics.value(least, "of=\"least\"");
    metrics.value(sum / known, "of=\"mean\"");
    metrics.value(most, "of=\"most\"");
  }
}

}  // namespace

void write_metrics(std::string& to, const StatusFacts& facts) {
  Metrics metrics(to);
  write_info(metrics, facts.view);
  write_job_metrics(metrics, facts.view);
  write_troubled(metrics, facts.view);
  write_nodes(metrics, facts.view);
  write_rank_states(metrics, facts.view, facts.view.state.current());
  write_store(metrics, facts);
  write_measures(metrics, facts.samples);
  write_named_values(metrics, facts.samples);
  const JobView& view = facts.view;
  if (!view.live || view.state.end) return;
  const bool runs = view.state.phase == Phase::kRunning;  // else they are of an ended attempt
  write_collectives(metrics, runs ? collectives_now(facts) : event::CollectivesFound());
}

}  // namespace muster
