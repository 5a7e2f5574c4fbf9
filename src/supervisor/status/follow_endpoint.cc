// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/follow_endpoint.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/status/answers.h"
#include "supervisor/status/follow_session.h"
#include "supervisor/status/numbers.h"

namespace muster {

namespace {

// Logs in one stream. With the longest offsets their cursor has 6 KiB, which a client sends back
// in a header.
constexpr size_t kMaxLogs = 512;
constexpr int64_t kMaxTail = 5'000;
constexpr int64_t kDefaultTail = 200;

Result<FollowStart> start_of(const HttpServerRequest& request) {
  FollowStart start;
  const auto time = request.parameter("time");
  const auto tail = request.parameter("tail");
  if (time && tail) return Error{400, "tail= and time= exclude each other"};
  const auto number = whole_number(time ? *time : tail.value_or(std::to_string(kDefaultTail)));
  if (!number) return Error{400, "tail= and time= are whole numbers"};
  if (time) {
    // One line finds the place; what follows is everything.
    start.query.from = LogQuery::From::kTime;
    start.query.position = *number;
    start.query.max_lines = 1;
    start.everything = true;
    start.forward = "&time=" + std::to_string(*number);
  } else {
    start.query.max_lines = std::min(*number, kMaxTail);
    start.forward = "&tail=" + std::to_string(start.query.max_lines);
  }
  return start;
}

// How far the client has come; nothing if that is not told, or not of these logs.
std::optional<LogCursor> cursor_of(const HttpServerRequest& request) {
  for (auto text : {request.header("last-event-id"), request.parameter("cursor"),
                    request.parameter("last_event_id")}) {
    if (!text || text->empty()) continue;
    if (std::optional<LogCursor> cursor = decode_cursor(*text)) return cursor;
  }
  return std::nullopt;
}

// A client that did not name the attempt goes on with that in which it began.
Result<std::vector<ChosenLog>> logs_of(const JobSource& source, const HttpServerRequest& request,
                                       const std::optional<LogCursor>& cursor) {
  if (!cursor || !request.parameter("attempt").value_or("").empty()) {
    return choose_logs(source, request, DefaultAttempts::kCurrent);
  }
  HttpServerRequest named = request;
  named.query.emplace_back("attempt", std::to_string(cursor->attempt));
  return choose_logs(source, named, DefaultAttempts::kCurrent);
}

}  // namespace

void handle_follow(StatusContext& context, StatusCall call) {
  const HttpServerRequest& request = call.request();
  std::optional<LogCursor> cursor = cursor_of(request);
  Result<std::vector<ChosenLog>> logs = logs_of(context.source, request, cursor);
  if (!logs) return reply_error(*call.exchange, logs.error().code, logs.error().message);
  // A node asks another for what is there alone.
  if (call.forwarded) std::erase_if(*logs, [](const ChosenLog& log) { return !log.here; });
  if (logs->empty()) {
    return reply_error(*call.exchange, 404, "there are no logs to follow yet",
                       "GET /api/v1/events?stream=1 tells when there are");
  }
  if (logs->size() > kMaxLogs) {
    return reply_error(*call.exchange, 400,
                       std::to_string(logs->size()) + " logs are too many for one stream",
                       "choose at most " + std::to_string(kMaxLogs) + " with ranks= and streams=");
  }
  const bool kept = std::none_of(logs->begin(), logs->end(),
                                 [](const ChosenLog& log) { return log.here && log.path.empty(); });
  if (!kept) return reply_error(*call.exchange, 404, "this run keeps no log files");
  Result<FollowStart> start = start_of(request);
  if (!start) return reply_error(*call.exchange, start.error().code, start.error().message);
  if (request.method == "HEAD") {
    return call.exchange->reply(200, {{"Content-Type", "text/event-stream"}}, "");
  }
  if (context.sessions.lasting() >= FollowSession::kMaxSessions) {
    return reply_error(*call.exchange, 503, "too many logs are followed at a time",
                       "close a page, or ask again later");
  }
  if (!cursor || cursor->attempt != logs->front().attempt ||
      cursor->offsets.size() != logs->size()) {
    cursor = LogCursor{logs->front().attempt, {}};
    cursor->offsets.resize(logs->size());
  }
  context.sessions.add(std::make_unique<FollowSession>(
      context, std::move(call.exchange), std::move(*logs), std::move(*cursor), std::move(*start)));
}

}  // namespace muster
