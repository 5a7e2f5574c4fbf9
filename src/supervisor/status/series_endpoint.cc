// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/series_endpoint.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/browse/series.h"
#include "supervisor/status/answers.h"
#include "supervisor/status/json_out.h"
#include "supervisor/status/log_choice.h"
#include "supervisor/status/log_endpoint.h"
#include "supervisor/status/numbers.h"

namespace muster {

namespace {

std::string write_series(const std::vector<SeriesPoint>& points) {
  std::string text;
  JsonOut out(text);
  auto number = [&out](int64_t value) { value < 0 ? out.null() : out.value(value); };
  out.begin_object();
  out.key("points");
  out.begin_array();
  for (const SeriesPoint& point : points) {
    out.begin_list();
    out.value(point.time_us);
    number(point.step);
    number(point.steps);
    out.value(point.loss);
    out.end_array();
  }
  out.end_array();
  out.end_object();
  text += '\n';
  return text;
}

class SeriesSession final : public StatusSession {
 public:
  SeriesSession(StatusContext& context, std::unique_ptr<HttpExchange> exchange,
                const std::vector<std::string>& paths)
      : exchange_(std::move(exchange)) {
    exchange_->set_callbacks({nullptr, [this, &context] { context.sessions.end(*this); }});
    task_ = read_series(context.reader, paths,
                        [this, &context](const std::vector<SeriesPoint>& points) {
                          reply_json(*exchange_, write_series(points));
                          context.sessions.end(*this);
                        });
  }

 private:
  std::unique_ptr<HttpExchange> exchange_;
  std::unique_ptr<BrowseTask> task_;
};

}  // namespace

void handle_series(StatusContext& context, StatusCall call) {
  const auto attempt = whole_number(call.captures[0]);
  const auto rank = whole_number(call.captures[1]);
  std::vector<std::string> paths;
  for (Stream stream : {Stream::kStdout, Stream::kStderr}) {
    std::optional<ChosenLog> log;
    if (attempt && rank && std::in_range<int>(*attempt) && std::in_range<int>(*rank)) {
      log = find_log(context.source, static_cast<int>(*attempt), static_cast<int>(*rank), stream);
    }
    if (!log) {
      return reply_error(*call.exchange, 404, "there is no such rank",
                         "/api/v1/ranks?attempt= lists those there are");
    }
    if (answer_elsewhere(context, call, *log)) return;
    paths.push_back(log->path);
  }
  context.sessions.add(std::make_unique<SeriesSession>(context, std::move(call.exchange), paths));
}

}  // namespace muster
