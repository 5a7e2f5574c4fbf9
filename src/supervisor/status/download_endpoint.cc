// SPDX-License-Identifier: Apache-2.0
//
// Each node packs its own logs into a part of the archive (archive_work.h); parts are put one
// behind the other as they come, and only the node that was asked adds the end.
#include "supervisor/status/download_endpoint.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/browse/archive.h"
#include "supervisor/status/answers.h"
#include "supervisor/status/file_name.h"
#include "supervisor/status/log_choice.h"
#include "supervisor/status/node_logs.h"
#include "supervisor/status/remote_call.h"

namespace muster {

namespace {

constexpr size_t kMaxUnsent = size_t{1} << 20;  // then it is paused
constexpr size_t kMaxSessions = 8;              // then 503
constexpr char kContentType[] = "application/gzip";

class DownloadSession final : public StatusSession {
 public:
  DownloadSession(StatusContext& context, std::unique_ptr<HttpExchange> exchange, bool is_part,
                  const std::vector<ChosenLog>& logs)
      : context_(context),
        exchange_(std::move(exchange)),
        is_part_(is_part),
        nodes_(group_by_node(logs)) {
    exchange_->set_callbacks(
        {[this] { set_paused(false); }, [this] { context_.sessions.end(*this); }});
    exchange_->begin(200, {{"Content-Type", kContentType},
                           {"Cache-Control", "no-store"},
                           {"Content-Disposition",
                            "attachment; filename=\"" +
                                plain_name(context.source.state().job.run_id) + ".tar.gz\""}});
    pack_here(logs);
  }

 private:
  void pack_here(const std::vector<ChosenLog>& logs) {
    std::vector<ArchiveEntry> entries;
    for (const ChosenLog& log : logs) {
      if (!log.here || log.path.empty()) continue;
      entries.push_back({"attempt_" + std::to_string(log.attempt) + "/rank_" +
                             std::to_string(log.rank) + "/" + std::string(stream_name(log.stream)) +
                             ".log",
                         log.path});
    }
    archive_ = LogArchive::start(context_.reader.gate(), std::move(entries),
                                 [this](const std::string& packed, const LogArchive::State& state) {
                                   write(packed);
                                   if (!state.done) return;
                                   notes_ = state.troubles;
                                   ask_next();
                                 });
  }

  void ask_next() {
    call_.reset();
    if (next_node_ == nodes_.size()) return finish();
    const NodeLogs& node = nodes_[next_node_++];
    status_ = 0;
    RemoteCall::Callbacks callbacks;
    callbacks.on_head = [this](int status, const HttpHeaders&) { status_ = status; };
    callbacks.on_piece = [this](std::string_view piece) {
      if (status_ == 200) write(piece);
    };
    callbacks.on_end = [this] {
      if (status_ != 200) note_missing("was refused");
      later();
    };
    callbacks.on_lost = [this] {
      // What came of its part cannot be taken back: a broken archive must not look whole.
      if (status_ == 200) return context_.sessions.end(*this);
      note_missing("went away");
      later();
    };
    call_ = RemoteCall::start(context_.loop, context_.source, node.attempt, node.node,
                              "/api/v1/download?" + node.query(), std::move(callbacks));
    if (call_ && paused_) call_->set_paused(true);
    if (!call_) {
      note_missing("is not connected");
      later();
    }
  }

  // The call is dropped outside its callbacks.
  void later() {
    context_.loop.post([this, alive = std::weak_ptr<int>(alive_)] {
      if (!alive.expired()) ask_next();
    });
  }

  void note_missing(const std::string& why) {
    const NodeLogs& node = nodes_[next_node_ - 1];
    notes_.push_back("the logs of " + node.host + " (" + node.query() + ") are missing: it " + why);
  }

  void finish() {
    if (!is_part_) {
      const auto now = std::chrono::system_clock::now().time_since_epoch();
      exchange_->write(
          archive_end(notes_, std::chrono::duration_cast<std::chrono::seconds>(now).count()));
    }
    exchange_->finish();
    context_.sessions.end(*this);
  }

  void write(std::string_view bytes) {
    exchange_->write(bytes);
    if (exchange_->unsent() > kMaxUnsent) set_paused(true);
  }

  void set_paused(bool paused) {
    if (std::exchange(paused_, paused) == paused) return;
    archive_->set_paused(paused);
    if (call_) call_->set_paused(paused);
  }

  StatusContext& context_;
  std::unique_ptr<HttpExchange> exchange_;
  const bool is_part_;  // for another node, which puts the parts together
  std::unique_ptr<LogArchive> archive_;
  const std::vector<NodeLogs> nodes_;
  size_t next_node_ = 0;
  std::unique_ptr<RemoteCall> call_;
  int status_ = 0;  // of its answer
  std::vector<std::string> notes_;
  bool paused_ = false;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace

void handle_download(StatusContext& context, StatusCall call) {
  const HttpServerRequest& request = call.request();
  Result<std::vector<ChosenLog>> logs =
      choose_logs(context.source, request, DefaultAttempts::kCurrent);
  if (!logs) return reply_error(*call.exchange, logs.error().code, logs.error().message);
  // A node asks another for what is there alone.
  if (call.forwarded) std::erase_if(*logs, [](const ChosenLog& log) { return !log.here; });
  if (logs->empty()) return reply_error(*call.exchange, 404, "there are no logs yet");
  const bool kept = std::none_of(logs->begin(), logs->end(),
                                 [](const ChosenLog& log) { return log.here && log.path.empty(); });
  if (!kept) return reply_error(*call.exchange, 404, "this run keeps no log files");
  if (request.method == "HEAD")
    return call.exchange->reply(200, {{"Content-Type", kContentType}}, "");
  if (context.sessions.count<DownloadSession>() >= kMaxSessions)
    return reply_error(*call.exchange, 503, "too many downloads are going on",
                       "ask again when one has ended");
  context.sessions.add(
      std::make_unique<DownloadSession>(context, std::move(call.exchange), call.forwarded, *logs));
}

}  // namespace muster
