// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/samples_endpoint.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "supervisor/browse/browse_gate.h"
#include "supervisor/status/answers.h"
#include "supervisor/status/log_choice.h"
#include "supervisor/status/rows.h"
#include "supervisor/status/sample_history.h"
#include "supervisor/status/sessions.h"
#include "supervisor/status/status_json.h"

namespace muster {

namespace {

constexpr size_t kHistorySamples = 10'000;
constexpr size_t kMaxHistorySamples = 100'000;

bool in_list(const std::optional<RankList>& ranks, int rank) {
  return !ranks || std::any_of(ranks->begin(), ranks->end(), [rank](const auto& range) {
    return range.first <= rank && rank <= range.second;
  });
}

std::string samples_json(const std::vector<RankSample>& samples,
                         const std::optional<RankList>& ranks) {
  std::string body;
  JsonOut out(body, JsonOut::Layout::kLines);
  out.begin_object();
  out.key("samples");
  out.begin_array();
  for (const RankSample& sample : samples)
    if (in_list(ranks, sample.rank)) write_sample(out, sample);
  out.end_array();
  out.end_object();
  return body + '\n';
}

// Reads the history in the pool, taking its turn with those who read logs.
class HistorySession : public StatusSession {
 public:
  HistorySession(StatusContext& context, StatusCall call, std::optional<RankList> ranks,
                 size_t limit)
      : sessions_(context.sessions), call_(std::move(call)) {
    auto body = std::make_shared<std::string>();
    const std::string path = context.source.run_dir() + "/samples.jsonl";
    job_ = context.reader.gate().add(
        [body, path, ranks, limit] {
          *body = samples_json(
              read_history(path, limit, [&](int rank) { return in_list(ranks, rank); }),
              std::nullopt);
        },
        [this, body] {
          reply_json(*call_.exchange, std::move(*body));
          sessions_.end(*this);
        });
    call_.exchange->set_callbacks({nullptr, [this] { sessions_.end(*this); }});
    job_->wake();
  }

 private:
  Sessions& sessions_;
  StatusCall call_;
  std::unique_ptr<BrowseJob> job_;
};

}  // namespace

void handle_samples(StatusContext& context, StatusCall call) {
  const HttpServerRequest& request = call.request();
  std::optional<RankList> ranks;
  if (const auto wanted = request.parameter("ranks")) {
    ranks = parse_rank_list(*wanted);
    if (!ranks) return reply_error(*call.exchange, 400, "ranks= is a list like 0-7,9");
  }
  const bool history = request.parameter("history").value_or("0") != "0";
  if (!history || context.source.run_dir().empty()) {
    const std::vector<RankSample> samples =
        history ? std::vector<RankSample>() : context.source.samples();
    return reply_json(*call.exchange, samples_json(samples, ranks));
  }
  size_t limit = kHistorySamples;
  if (const auto wanted = request.parameter("limit")) {
    const auto [end, error] =
        std::from_chars(wanted->data(), wanted->data() + wanted->size(), limit);
    if (error != std::errc() || end != wanted->data() + wanted->size() || limit == 0 ||
        limit > kMaxHistorySamples) {
      return reply_error(*call.exchange, 400,
                         "limit= is a number from 1 to " + std::to_string(kMaxHistorySamples));
    }
  }
  context.sessions.add(
      std::make_unique<HistorySession>(context, std::move(call), std::move(ranks), limit));
}

}  // namespace muster
