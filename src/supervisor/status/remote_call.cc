// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/remote_call.h"

#include <optional>
#include <utility>

#include "loop/check.h"
#include "loop/http_target.h"

namespace muster {

namespace {

class Call;

// What the call and its exchange both hold: the exchange belongs to whoever answers it. What has
// come waits here until the next turn of the loop, or longer while the reader is paused.
struct Shared {
  Shared(Loop& in, RemoteCall::Callbacks reader) : loop(in), callbacks(std::move(reader)) {}

  Loop& loop;
  RemoteCall::Callbacks callbacks;
  HttpExchange::Callbacks answerer;
  bool reader_gone = false;    // the call was dropped
  bool answerer_gone = false;  // the exchange was dropped
  bool paused = false;
  bool posted = false;
  bool head_told = false;
  int status = 0;  // 0: no head yet
  HttpHeaders headers;
  std::string unread;
  bool finished = false;
  bool end_told = false;
};

void deliver(const std::shared_ptr<Shared>& shared);

void post(const std::shared_ptr<Shared>& shared) {
  if (std::exchange(shared->posted, true)) return;
  shared->loop.post([shared] {
    shared->posted = false;
    deliver(shared);
  });
}

// To the reader what there is, to the answerer whether it may go on. Each callback may drop the
// call.
void deliver(const std::shared_ptr<Shared>& shared) {
  if (shared->reader_gone) {
    // Told once, and by a copy: it may drop the exchange.
    const auto on_gone = std::exchange(shared->answerer.on_gone, nullptr);
    if (on_gone && !shared->answerer_gone) on_gone();
    return;
  }
  if (shared->paused || shared->end_told) return;
  const auto callbacks = shared->callbacks;
  if (shared->status != 0 && !std::exchange(shared->head_told, true)) {
    callbacks.on_head(shared->status, shared->headers);
    if (shared->reader_gone || shared->paused) return;
  }
  if (!shared->unread.empty()) {
    const std::string piece = std::exchange(shared->unread, {});
    callbacks.on_piece(piece);
    if (shared->reader_gone) return;
    const auto on_drained = shared->answerer.on_drained;
    if (on_drained && !shared->answerer_gone && !shared->finished) on_drained();
    if (shared->reader_gone || shared->paused || !shared->unread.empty()) return;
  }
  if (!shared->finished && !shared->answerer_gone) return;
  shared->end_told = true;
  shared->callbacks = {};
  shared->finished ? callbacks.on_end() : callbacks.on_lost();
}

class CallExchange final : public HttpExchange {
 public:
  CallExchange(std::shared_ptr<Shared> shared, HttpServerRequest request)
      : shared_(std::move(shared)), request_(std::move(request)) {}

  ~CallExchange() override {
    shared_->answerer_gone = true;
    shared_->answerer = {};
    if (!shared_->finished && !shared_->reader_gone) post(shared_);
  }

  const HttpServerRequest& request() const override { return request_; }

  void set_callbacks(Callbacks callbacks) override {
    shared_->answerer = std::move(callbacks);
    if (shared_->reader_gone) post(shared_);
  }

  void reply(int status, HttpHeaders headers, std::string body) override {
    begin(status, std::move(headers), static_cast<int64_t>(body.size()));
    write(body);
    finish();
  }

  void begin(int status, HttpHeaders headers, int64_t) override {
    shared_->status = status;
    shared_->headers = std::move(headers);
    post(shared_);
  }

  void write(std::string_view piece) override {
    if (shared_->reader_gone) return;
    shared_->unread.append(piece);
    post(shared_);
  }

  void finish() override {
    shared_->finished = true;
    if (!shared_->reader_gone) post(shared_);
  }

  size_t unsent() const override { return shared_->reader_gone ? 0 : shared_->unread.size(); }

 private:
  std::shared_ptr<Shared> shared_;
  HttpServerRequest request_;
};

class Call final : public RemoteCall {
 public:
  explicit Call(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

  ~Call() override {
    shared_->reader_gone = true;
    shared_->callbacks = {};
    shared_->unread.clear();
    if (!shared_->answerer_gone) post(shared_);
  }

  void set_paused(bool paused) override {
    if (std::exchange(shared_->paused, paused) && !paused) post(shared_);
  }

 private:
  std::shared_ptr<Shared> shared_;
};

}  // namespace

std::unique_ptr<RemoteCall> RemoteCall::start(Loop& loop, JobSource& source, int attempt, int node,
                                              const std::string& target, Callbacks callbacks) {
  HttpServerRequest request;
  request.method = "GET";
  request.target = target;
  std::optional<HttpTarget> parsed = parse_target(target, false);
  MUST(parsed.has_value());
  request.path = std::move(parsed->path);
  request.query = std::move(parsed->query);
  auto shared = std::make_shared<Shared>(loop, std::move(callbacks));
  std::unique_ptr<HttpExchange> exchange =
      std::make_unique<CallExchange>(shared, std::move(request));
  // Made first, so that it is silent when the exchange was not taken.
  auto call = std::make_unique<Call>(std::move(shared));
  if (!source.forward(attempt, node, exchange)) return nullptr;
  return call;
}

}  // namespace muster
