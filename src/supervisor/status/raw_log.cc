// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/raw_log.h"

#include <algorithm>
#include <string>
#include <utility>

#include "loop/http_content.h"
#include "supervisor/status/answers.h"
#include "supervisor/status/file_name.h"
#include "supervisor/status/log_json.h"

namespace muster {

namespace {

constexpr int64_t kPiece = int64_t{256} << 10;

// Nothing in a log is ever markup, whoever opens it.
constexpr char kPolicy[] = "default-src 'none'; frame-ancestors 'none'; sandbox";

// "run_attempt_0_rank_3_stdout.log"
std::string file_name(const JobState& state, const ChosenLog& log) {
  return plain_name(state.job.run_id) + "_attempt_" + std::to_string(log.attempt) + "_rank_" +
         std::to_string(log.rank) + "_" + std::string(stream_name(log.stream)) + ".log";
}

// Two steps: a look at the log's size and hole, then its bytes piece by piece, each when the client
// has taken the one before.
class RawSession final : public StatusSession {
 public:
  RawSession(StatusContext& context, std::unique_ptr<HttpExchange> exchange, ChosenLog log)
      : context_(context), exchange_(std::move(exchange)), log_(std::move(log)) {
    exchange_->set_callbacks({[this] { next(); }, [this] { end(); }});
    growing_ = may_grow(context_.source, log_);
    LogQuery look;
    look.max_lines = 1;
    look.max_line = 1;
    task_ = context_.reader.read(log_.path, look,
                                 [this](Result<LogPage> page) { begin(std::move(page)); });
  }

 private:
  void end() { context_.sessions.end(*this); }
  void begin(Result<LogPage> page);
  void begin_part(const LogPage& page, const HttpRange& range);
  void begin_whole(const LogPage& page);
  void refuse_range(const LogPage& page, const std::string& hint);
  HttpHeaders headers() const;
  void next();
  void on_bytes(Result<LogReader::Bytes> read);

  StatusContext& context_;
  std::unique_ptr<HttpExchange> exchange_;
  const ChosenLog log_;
  bool growing_ = false;
  bool sending_ = false;  // the head is out and the end is not
  bool exact_ = false;    // a length was promised
  int64_t at_ = 0;
  int64_t stop_ = 0;
  std::unique_ptr<BrowseTask> task_;
};

HttpHeaders RawSession::headers() const {
  HttpHeaders headers{{"Content-Type", "text/plain; charset=utf-8"},
                      {"Content-Security-Policy", kPolicy},
                      {"Accept-Ranges", "bytes"}};
  if (exchange_->request().parameter("download").value_or("0") != "0") {
    headers.emplace_back(
        "Content-Disposition",
        "attachment; filename=\"" + file_name(context_.source.state(), log_) + "\"");
  }
  return headers;
}

void RawSession::begin(Result<LogPage> page) {
  task_.reset();
  if (!page) {
    reply_error(*exchange_, 500, page.error().message);
    return end();
  }
  // A log has no ETag: whoever asks with If-Range gets the whole.
  const HttpRange range = choose_range(exchange_->request(), page->size, "");
  range.kind == HttpRange::Kind::kWhole ? begin_whole(*page) : begin_part(*page, range);
}

void RawSession::begin_whole(const LogPage& page) {
  stop_ = page.size;
  // What is left out in the middle, or may be while we read, has no length that could be promised.
  exact_ = !growing_ && page.hole_end == page.hole_begin;
  exchange_->begin(200, headers(), exact_ ? stop_ : -1);
  sending_ = true;
  if (exchange_->request().method == "HEAD") stop_ = 0;
  next();
}

// What was left out is in no part: one that begins before it ends there, and the last so many bytes
// begin behind it.
void RawSession::begin_part(const LogPage& page, const HttpRange& range) {
  if (range.kind == HttpRange::Kind::kUnsatisfiable) return refuse_range(page, "");
  int64_t first = range.first;
  int64_t end = range.first + range.count;
  const bool in_hole = first >= page.hole_begin && first < page.hole_end;
  if (in_hole &&
      exchange_->request().header("range").value_or("").find("=-") == std::string::npos) {
    return refuse_range(page, "this log has left out its bytes from " +
                                  std::to_string(page.hole_begin) + " to " +
                                  std::to_string(page.hole_end));
  }
  if (in_hole) first = page.hole_end;
  if (first < page.hole_begin) end = std::min(end, page.hole_begin);
  at_ = first;
  stop_ = end;
  exact_ = true;
  HttpHeaders with = headers();
  with.emplace_back("Content-Range",
                    content_range({HttpRange::Kind::kPart, first, end - first}, page.size));
  exchange_->begin(206, std::move(with), end - first);
  sending_ = true;
  if (exchange_->request().method == "HEAD") at_ = stop_;
  next();
}

void RawSession::refuse_range(const LogPage& page, const std::string& hint) {
  exchange_->reply(416,
                   {{"Content-Type", "application/json"},
                    {"Content-Range", content_range({HttpRange::Kind::kUnsatisfiable}, page.size)}},
                   error_json(416, "the log has no such bytes", hint));
  end();
}

void RawSession::next() {
  if (!sending_ || task_ || exchange_->unsent() > 0) return;
  if (at_ >= stop_) {
    sending_ = false;
    exchange_->finish();
    return end();
  }
  task_ = context_.reader.read_bytes(
      log_.path, at_, std::min(kPiece, stop_ - at_),
      [this](Result<LogReader::Bytes> read) { on_bytes(std::move(read)); });
}

void RawSession::on_bytes(Result<LogReader::Bytes> read) {
  task_.reset();
  // Cut, emptied or removed while we read: half an answer is not passed off as a whole one.
  const bool cut = !read || read->offset > at_ || read->bytes.empty();
  if (cut && (exact_ || !read)) return end();
  if (read->offset > at_) {
    exchange_->write("[muster: " + std::to_string(read->offset - at_) +
                     " bytes are left out here]\n");
    at_ = read->offset;
  }
  if (read->bytes.empty()) stop_ = at_;
  read->bytes.resize(
      static_cast<size_t>(std::clamp<int64_t>(stop_ - at_, 0, std::ssize(read->bytes))));
  if (!read->bytes.empty()) exchange_->write(read->bytes);
  at_ += std::ssize(read->bytes);
  next();
}

}  // namespace

void answer_raw_log(StatusContext& context, std::unique_ptr<HttpExchange> exchange,
                    const ChosenLog& log) {
  context.sessions.add(std::make_unique<RawSession>(context, std::move(exchange), log));
}

}  // namespace muster
