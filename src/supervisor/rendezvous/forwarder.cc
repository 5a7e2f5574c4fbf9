// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/forwarder.h"

#include <utility>

#include "loop/http_answer.h"
#include "supervisor/rendezvous/forwarded_words.h"

namespace muster {

namespace {

// While a client has not taken that much, no more is asked for.
constexpr size_t kLowWater = kRequestWindow / 2;

constexpr int kMethodNotAllowed = 405;

void reply_error(HttpExchange& exchange, int status, const std::string& message) {
  exchange.reply(status, {{"content-type", "application/json"}, {"cache-control", "no-store"}},
                 http_error_body(status, message));
}

}  // namespace

struct Forwarder::Copy {
  std::unique_ptr<HttpExchange> exchange;
  std::unique_ptr<RemoteRequest> request;
  bool head_only = false;
  bool begun = false;
  size_t owed = 0;  // bytes that were written and not yet told as consumed
};

Forwarder::Forwarder() = default;

Forwarder::~Forwarder() = default;

void Forwarder::forward(std::unique_ptr<HttpExchange> exchange, const Start& start) {
  const HttpServerRequest& asked = exchange->request();
  const bool head_only = asked.method == "HEAD";
  if (!head_only && asked.method != "GET") {
    return reply_error(*exchange, kMethodNotAllowed, "another node's data can only be read");
  }
  const int64_t id = ++last_id_;
  RemoteRequest::Callbacks callbacks;
  callbacks.on_head = [this, id](int status, HttpHeaders headers, int64_t length) {
    head(id, status, std::move(headers), length);
  };
  callbacks.on_piece = [this, id](std::string_view bytes) { piece(id, bytes); };
  callbacks.on_end = [this, id] { end(id); };
  callbacks.on_broken = [this, id](int status, const std::string& why) { broken(id, status, why); };
  auto request =
      start({target_to_ask_for(asked), headers_to_ask_with(asked.headers)}, std::move(callbacks));
  if (!request) return reply_error(*exchange, request.error().code, request.error().message);
  exchange->set_callbacks({[this, id] { give_credit(id); }, [this, id] { copies_.erase(id); }});
  copies_.emplace(id, std::make_unique<Copy>(
                          Copy{std::move(exchange), std::move(*request), head_only, false, 0}));
}

void Forwarder::head(int64_t id, int status, HttpHeaders headers, int64_t length) {
  Copy& copy = *copies_.at(id);
  copy.begun = true;
  copy.exchange->begin(status, std::move(headers), length);
  if (!copy.head_only) return;
  copy.exchange->finish();
  copies_.erase(id);
}

void Forwarder::piece(int64_t id, std::string_view bytes) {
  Copy& copy = *copies_.at(id);
  copy.exchange->write(bytes);
  copy.owed += bytes.size();
  if (copy.exchange->unsent() <= kLowWater) give_credit(id);
}

void Forwarder::give_credit(int64_t id) {
  Copy& copy = *copies_.at(id);
  copy.request->consumed(std::exchange(copy.owed, 0));
}

void Forwarder::end(int64_t id) {
  copies_.at(id)->exchange->finish();
  copies_.erase(id);
}

// Half an answer must not pass for a whole one: the exchange is dropped unfinished.
void Forwarder::broken(int64_t id, int status, const std::string& why) {
  Copy& copy = *copies_.at(id);
  if (!copy.begun) reply_error(*copy.exchange, status, why);
  copies_.erase(id);
}

}  // namespace muster
