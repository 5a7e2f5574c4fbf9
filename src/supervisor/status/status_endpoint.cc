// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/status_endpoint.h"

#include <string>
#include <utility>

#include "supervisor/status/answers.h"
#include "supervisor/status/log_choice.h"
#include "supervisor/status/metrics.h"
#include "supervisor/status/status_json.h"

namespace muster {

namespace {

StatusFacts facts_of(JobSource& source) {
  std::vector<RankSample> samples = source.samples();
  return {view_of(source), std::move(samples), source.store_waiters(), source.store_counters(),
          Clock::now()};
}

}  // namespace

void handle_status(StatusContext& context, StatusCall call) {
  std::optional<RankList> asked;
  if (const auto wanted = call.request().parameter("ranks")) {
    asked = parse_rank_list(*wanted);
    if (!asked) {
      return reply_error(*call.exchange, 400, "ranks= is a list of ranks and ranges",
                         "for example /status?ranks=0-7,12");
    }
    const std::string problem = check_asked_ranks(context.source.state(), *asked);
    if (!problem.empty()) return reply_error(*call.exchange, 400, "ranks=: " + problem);
  }
  std::string body;
  write_status(body, facts_of(context.source), asked);
  reply_json(*call.exchange, std::move(body));
}

void handle_metrics(StatusContext& context, StatusCall call) {
  std::string body;
  write_metrics(body, facts_of(context.source));
  call.exchange->reply(200, {{"content-type", "text/plain; version=0.0.4; charset=utf-8"}},
                       std::move(body));
}

}  // namespace muster
