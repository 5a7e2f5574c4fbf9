// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/log_endpoint.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "supervisor/status/answers.h"
#include "supervisor/status/log_json.h"
#include "supervisor/status/numbers.h"
#include "supervisor/status/raw_log.h"

namespace muster {

namespace {

constexpr int64_t kMaxLines = 5'000;
constexpr int64_t kMaxLine = int64_t{1} << 20;

// One page, read in the pool.
class PageSession final : public StatusSession {
 public:
  PageSession(StatusContext& context, std::unique_ptr<HttpExchange> exchange, ChosenLog log,
              const LogQuery& query)
      : context_(context),
        exchange_(std::move(exchange)),
        log_(std::move(log)),
        none_wanted_(query.max_lines == 0) {
    exchange_->set_callbacks({nullptr, [this] { context_.sessions.end(*this); }});
    // Asked before the file is read: a log that has ended before is whole.
    const bool growing = may_grow(context_.source, log_);
    task_ = context_.reader.read(log_.path, query, [this, growing](Result<LogPage> page) {
      answer(std::move(page), growing);
      context_.sessions.end(*this);
    });
  }

 private:
  void answer(Result<LogPage> page, bool growing) {
    if (!page && page.error().code == ENODATA) {
      return reply_error(*exchange_, 409, "no times are known of this log",
                         "ask for it by offset=, line= or tail=");
    }
    if (!page) return reply_error(*exchange_, 500, page.error().message);
    if (none_wanted_) {
      page->lines.clear();
      page->end = page->offset;
    }
    std::string text;
    JsonOut out(text);
    write_page(out, log_, *page, growing);
    text += '\n';
    reply_json(*exchange_, std::move(text));
  }

  StatusContext& context_;
  std::unique_ptr<HttpExchange> exchange_;
  const ChosenLog log_;
  const bool none_wanted_;  // of the lines: only how long it is
  std::unique_ptr<BrowseTask> task_;
};

}  // namespace

Result<std::optional<LogQuery>> log_query(const HttpServerRequest& request) {
  constexpr std::pair<const char*, LogQuery::From> kWays[] = {
      {"offset", LogQuery::From::kOffset}, {"line", LogQuery::From::kLine},
      {"time", LogQuery::From::kTime},     {"tail", LogQuery::From::kTail},
      {"before", LogQuery::From::kTail},
  };
  LogQuery query;
  const char* way = nullptr;
  for (const auto& [name, from] : kWays) {
    const auto value = request.parameter(name);
    if (!value) continue;
    if (way != nullptr) {
      return Error{400, std::string(way) + "= and " + name + "= exclude each other"};
    }
    const auto number = whole_number(*value);
    if (!number) return Error{400, std::string(name) + "= is a whole number"};
    way = name;
    query.from = from;
    (std::string_view(name) == "tail" ? query.max_lines : query.position) = *number;
  }
  if (way == nullptr) return std::optional<LogQuery>();
  for (auto [name, most, target] : {std::tuple("lines", kMaxLines, &query.max_lines),
                                    std::tuple("max_line", kMaxLine, &query.max_line)}) {
    const auto value = request.parameter(name);
    if (!value) continue;
    const auto number = whole_number(*value);
    if (!number) return Error{400, std::string(name) + "= is a whole number"};
    *target = std::min(*number, most);
  }
  query.max_lines = std::min(query.max_lines, kMaxLines);
  // Before the beginning there is nothing; a tail "before 0" would be that of the whole.
  if (std::string_view(way) == "before" && query.position == 0) {
    query.from = LogQuery::From::kOffset;
    query.max_lines = 0;
  }
  return std::optional(query);
}

bool answer_elsewhere(StatusContext& context, StatusCall& call, const ChosenLog& log) {
  JobSource& source = context.source;
  if (!log.path.empty()) return false;
  if (log.here) {
    reply_error(*call.exchange, 404, "this run keeps no log files",
                "start it without --log-dir /dev/null");
    return true;
  }
  if (!call.forwarded && source.forward(log.attempt, log.node, call.exchange)) return true;
  const std::string whose = "the log of rank " + std::to_string(log.rank) + " is on " +
                            (log.host.empty() ? "another node" : log.host);
  const std::string where = "it is at " + log_place(source.state(), log);
  if (source.live()) {
    reply_error(*call.exchange, 502, whose + ", which is not connected now", where);
  } else {
    reply_error(*call.exchange, 404, whose, where);
  }
  return true;
}

void handle_log(StatusContext& context, StatusCall call) {
  const auto attempt = whole_number(call.captures[0]);
  const auto rank = whole_number(call.captures[1]);
  const auto stream = stream_named(call.captures[2]);
  std::optional<ChosenLog> log;
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  if (attempt && rank && stream && *attempt <= kMost && *rank <= kMost) {
    log = find_log(context.source, static_cast<int>(*attempt), static_cast<int>(*rank), *stream);
  }
  if (!log) {
    return reply_error(*call.exchange, 404, "there is no such log",
                       "/api/v1/logs/ATTEMPT/RANK/stdout or stderr; /api/v1/attempts and "
                       "/api/v1/ranks?attempt= list those there are");
  }
  Result<std::optional<LogQuery>> query = log_query(call.request());
  if (!query) return reply_error(*call.exchange, query.error().code, query.error().message);
  if (answer_elsewhere(context, call, *log)) return;
  if (*query) {
    context.sessions.add(
        std::make_unique<PageSession>(context, std::move(call.exchange), std::move(*log), **query));
  } else {
    answer_raw_log(context, std::move(call.exchange), *log);
  }
}

}  // namespace muster
