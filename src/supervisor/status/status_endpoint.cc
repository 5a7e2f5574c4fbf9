// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/status_endpoint.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "loop/timer.h"
#include "supervisor/status/answers.h"
#include "supervisor/status/log_choice.h"
#include "supervisor/status/metrics.h"
#include "supervisor/status/sessions.h"
#include "supervisor/status/status_json.h"

namespace muster {

namespace {

constexpr int64_t kFreshUs = 3'000'000;
constexpr Milliseconds kLookEvery{20};
constexpr int kMaxLooks = 10;

StatusFacts facts_of(JobSource& source) {
  std::vector<RankSample> samples = source.samples();
  return {view_of(source), std::move(samples), source.store_waiters(), source.store_counters(),
          Clock::now()};
}

// Whether what is measured of the running ranks is of now, as far as anybody measures.
bool are_fresh(const JobSource& source, const std::vector<RankSample>& samples) {
  const JobView view = view_of(source);
  const AttemptState* attempt = view.state.current();
  const bool measured =
      view.live && attempt != nullptr && count_ranks(view, *attempt)[RankShown::kRunning] > 0;
  return !measured || std::any_of(samples.begin(), samples.end(), [&](const RankSample& sample) {
    return view.now_us - sample.time_us < kFreshUs;
  });
}

void reply_status(StatusContext& context, HttpExchange& exchange,
                  const std::optional<RankList>& asked) {
  std::string body;
  write_status(body, facts_of(context.source), asked);
  reply_json(exchange, std::move(body));
}

// While nobody watches, measures are some seconds old. Whoever asks once, with curl, wants those of
// now: they have been asked for, and come within milliseconds.
class FreshStatus : public StatusSession {
 public:
  FreshStatus(StatusContext& context, StatusCall call, std::optional<RankList> asked)
      : context_(context), call_(std::move(call)), asked_(std::move(asked)) {
    call_.exchange->set_callbacks({nullptr, [this] { end(); }});
    timer_ = Timer::repeat(context.loop, kLookEvery, [this] { look(); });
  }

 private:
  void look() {
    if (++looks_ < kMaxLooks && !are_fresh(context_.source, context_.source.samples())) return;
    timer_.reset();
    reply_status(context_, *call_.exchange, asked_);
    end();
  }
  void end() { context_.sessions.end(*this); }

  StatusContext& context_;
  StatusCall call_;
  std::optional<RankList> asked_;
  Owned<Timer> timer_;
  int looks_ = 0;
};

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
  if (are_fresh(context.source, context.source.samples())) {
    return reply_status(context, *call.exchange, asked);
  }
  context.sessions.add(std::make_unique<FreshStatus>(context, std::move(call), std::move(asked)));
}

void handle_metrics(StatusContext& context, StatusCall call) {
  std::string body;
  write_metrics(body, facts_of(context.source));
  call.exchange->reply(200, {{"content-type", "text/plain; version=0.0.4; charset=utf-8"}},
                       std::move(body));
}

}  // namespace muster
