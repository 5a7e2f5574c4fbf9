// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/events_endpoint.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/job/event_json.h"
#include "supervisor/status/answers.h"
#include "supervisor/status/event_hub.h"
#include "supervisor/status/numbers.h"

namespace muster {

namespace {

constexpr int64_t kPiece = int64_t{256} << 10;
// A longer line of the file is passed over.
constexpr size_t kMaxLine = size_t{4} << 20;

const HttpHeaders kLinesHeaders{{"Content-Type", "application/x-ndjson"}};

// The number of an event's line: it comes first in each.
std::optional<int64_t> seq_in(std::string_view line) {
  constexpr std::string_view kKey = "{\"seq\":";
  if (line.substr(0, kKey.size()) != kKey) return std::nullopt;
  line.remove_prefix(kKey.size());
  return whole_number(line.substr(0, line.find(',')));
}

// Events that are not in memory any more come from the run's file; the last ones, which may not be
// in the file yet, from memory.
class HistorySession final : public StatusSession {
 public:
  HistorySession(StatusContext& context, std::unique_ptr<HttpExchange> exchange, int64_t since)
      : context_(context),
        exchange_(std::move(exchange)),
        path_(context.source.run_dir() + "/events.jsonl"),
        next_seq_(since) {
    exchange_->set_callbacks({[this] { next(); }, [this] { context_.sessions.end(*this); }});
    exchange_->begin(200, kLinesHeaders);
    next();
  }

 private:
  void next() {
    if (task_ || ended_ || exchange_->unsent() > 0) return;
    task_ = context_.reader.read_bytes(
        path_, at_, kPiece, [this](Result<LogReader::Bytes> read) { on_bytes(std::move(read)); });
  }

  void on_bytes(Result<LogReader::Bytes> read) {
    task_.reset();
    if (!read || read->bytes.empty()) return finish();
    at_ = read->offset + std::ssize(read->bytes);
    text_ += read->bytes;
    const std::string lines = take_lines();
    if (!lines.empty()) exchange_->write(lines);
    next();
  }

  // Whole lines of events that were asked for.
  std::string take_lines() {
    std::string lines;
    size_t begin = 0;
    for (size_t end = 0; (end = text_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      const std::string_view line = std::string_view(text_).substr(begin, end + 1 - begin);
      const std::optional<int64_t> seq = seq_in(line);
      if (!seq || *seq < next_seq_) continue;
      next_seq_ = *seq + 1;
      lines += line;
    }
    text_.erase(0, begin);
    if (text_.size() > kMaxLine) text_.clear();
    return lines;
  }

  void finish() {
    ended_ = true;
    std::string lines;
    for (const Event& event : context_.source.recent_events()) {
      if (event.seq >= next_seq_) lines += event_to_json(event) + "\n";
    }
    if (!lines.empty()) exchange_->write(lines);
    exchange_->finish();
    context_.sessions.end(*this);
  }

  StatusContext& context_;
  std::unique_ptr<HttpExchange> exchange_;
  const std::string path_;
  int64_t next_seq_;
  int64_t at_ = 0;
  std::string text_;  // not yet a whole line
  bool ended_ = false;
  std::unique_ptr<BrowseTask> task_;
};

void answer_lines(StatusContext& context, std::unique_ptr<HttpExchange> exchange, int64_t since) {
  const std::vector<Event> recent = context.source.recent_events();
  const bool all = recent.empty() ? since >= context.source.next_seq() : since >= recent[0].seq;
  if (!all && !context.source.run_dir().empty() && exchange->request().method != "HEAD") {
    context.sessions.add(std::make_unique<HistorySession>(context, std::move(exchange), since));
    return;
  }
  std::string lines;
  for (const Event& event : recent) {
    if (event.seq >= since) lines += event_to_json(event) + "\n";
  }
  exchange->reply(200, kLinesHeaders, std::move(lines));
}

}  // namespace

void handle_events(StatusContext& context, StatusCall call) {
  const HttpServerRequest& request = call.request();
  const bool stream =
      request.parameter("stream").value_or("0") != "0" ||
      request.header("accept").value_or("").find("text/event-stream") != std::string_view::npos;
  if (stream && request.method == "HEAD") {
    return call.exchange->reply(200, {{"Content-Type", "text/event-stream"}}, "");
  }
  if (stream) {
    // A browser that makes its stream anew cannot set the header.
    const std::string last_id(
        request.header("last-event-id").value_or(request.parameter("last_event_id").value_or("")));
    return context.hub.open(std::move(call.exchange), last_id);
  }
  const auto since = whole_number(request.parameter("since").value_or("0"));
  if (!since) return reply_error(*call.exchange, 400, "since= is the number of an event");
  answer_lines(context, std::move(call.exchange), *since);
}

}  // namespace muster
