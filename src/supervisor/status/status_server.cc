// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/status_server.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "loop/timer.h"
#include "supervisor/browse/log_reader.h"
#include "supervisor/status/access.h"
#include "supervisor/status/answers.h"
#include "supervisor/status/event_hub.h"
#include "supervisor/status/page_endpoint.h"
#include "supervisor/status/page_files.h"
#include "supervisor/status/peer_user.h"
#include "supervisor/status/random_hex.h"
#include "supervisor/status/router.h"
#include "supervisor/status/secured_exchange.h"
#include "supervisor/status/sessions.h"

namespace muster {

namespace {

constexpr size_t kTokenBytes = 16;
// How often it is looked whether those who watch have everything.
constexpr Milliseconds kFinishLook{20};

void redirect(HttpExchange& exchange, const AccessDecision& decision) {
  HttpHeaders headers{{"Content-Type", "text/plain; charset=utf-8"}};
  if (!decision.cookie.empty()) headers.emplace_back("Set-Cookie", decision.cookie);
  if (decision.kind == AccessDecision::Kind::kRedirect) {
    headers.emplace_back("Location", decision.location);
    return exchange.reply(decision.status, std::move(headers), "");
  }
  headers.emplace_back("Refresh", "0; url=" + decision.location);
  exchange.reply(decision.status, std::move(headers), "opening muster ...\n");
}

void refuse(HttpExchange& exchange, const AccessDecision& decision) {
  HttpHeaders headers;
  if (decision.status == 401) headers.emplace_back("WWW-Authenticate", "Bearer realm=\"muster\"");
  if (decision.kind == AccessDecision::Kind::kAskAgain) {
    headers.emplace_back("Content-Type", "text/html; charset=utf-8");
    return exchange.reply(decision.status, std::move(headers),
                          "<!doctype html>\n<html lang=\"en\">\n<title>muster</title>\n<p>" +
                              decision.message + "</p>\n<p>" + decision.hint +
                              "</p>\n<script src=\"" + kAskAgainPath + "\"></script>\n");
  }
  headers.emplace_back("Content-Type", "application/json");
  exchange.reply(decision.status, std::move(headers),
                 error_json(decision.status, decision.message, decision.hint));
}

class Server final : public StatusServer {
 public:
  Server(Loop& loop, Settings settings, JobSource& source)
      : loop_(loop),
        settings_(std::move(settings)),
        reader_(loop),
        hub_(loop, source),
        sessions_(loop),
        context_{loop, source, reader_, hub_, sessions_} {}

  Result<void> listen(Loop& loop);
  std::string url() const override;
  void handle_forwarded(std::unique_ptr<HttpExchange> exchange) override {
    answer(std::move(exchange), true);
  }
  void finish(std::function<void()> on_done) override;

 private:
  void handle(std::unique_ptr<HttpExchange> exchange);
  void answer(std::unique_ptr<HttpExchange> exchange, bool forwarded);
  bool finished() const { return hub_.all_told() && sessions_.size() == 0; }

  Loop& loop_;
  const Settings settings_;
  AccessRules rules_;
  PeerUser peer_user_;
  LogReader reader_;
  EventHub hub_;
  Sessions sessions_;
  StatusContext context_;
  std::unique_ptr<HttpServer> http_;
  Owned<Timer> finish_timer_;
};

Result<void> Server::listen(Loop& loop) {
  auto http = HttpServer::listen(
      loop, settings_.address, settings_.port,
      [this](std::unique_ptr<HttpExchange> exchange) { handle(std::move(exchange)); });
  if (!http) {
    Error error = http.error();
    error.message = "http: " + error.message;
    if (error.code == EADDRINUSE) {
      error.message += "; choose another port with --http HOST:PORT, or 0 for a free one";
    } else if (error.code == EADDRNOTAVAIL) {
      error.message += "; --http takes an address of this machine";
    } else if (error.code == EACCES) {
      error.message += "; ports below 1024 are root's";
    }
    return error;
  }
  http_ = std::move(*http);
  rules_ = {settings_.token, settings_.host_name, http_->port()};
  return {};
}

std::string Server::url() const {
  Result<SocketAddress> address = SocketAddress::parse(settings_.address, http_->port());
  MUST(address.has_value());
  const bool any = address->is_unspecified();
  const std::string host = any && !settings_.host_name.empty()
                               ? settings_.host_name + ":" + std::to_string(http_->port())
                               : address->to_string();
  return "http://" + host + "/?token=" + settings_.token;
}

void Server::handle(std::unique_ptr<HttpExchange> exchange) {
  exchange = secured(std::move(exchange));
  const HttpServerRequest& request = exchange->request();
  const AccessDecision decision = decide_access(
      rules_, request, [&] { return peer_user_.ask(request.peer, request.local) == ::geteuid(); });
  switch (decision.kind) {
    case AccessDecision::Kind::kAllow:
      return answer(std::move(exchange), false);
    case AccessDecision::Kind::kRedirect:
    case AccessDecision::Kind::kRefresh:
      return redirect(*exchange, decision);
    case AccessDecision::Kind::kRefuse:
    case AccessDecision::Kind::kAskAgain:
      return refuse(*exchange, decision);
  }
}

void Server::answer(std::unique_ptr<HttpExchange> exchange, bool forwarded) {
  const HttpServerRequest& request = exchange->request();
  if (forwarded && request.method != "GET" && request.method != "HEAD") {
    return reply_error(*exchange, 403, "only reading is passed on between nodes");
  }
  RouteMatch match = find_route(status_routes(), request.method, request.path);
  if (match.handler == nullptr && find_page_file(request.path) != nullptr) {
    const bool reads = request.method == "GET" || request.method == "HEAD";
    reads ? void(match.handler = handle_page_file) : void(match.allow = "GET, HEAD");
  }
  if (match.handler != nullptr) {
    return match.handler(context_, {std::move(exchange), std::move(match.captures), forwarded});
  }
  if (!match.allow.empty()) {
    return exchange->reply(
        405, {{"Content-Type", "application/json"}, {"Allow", match.allow}},
        error_json(405, request.method + " is not for " + request.path, "it takes " + match.allow));
  }
  reply_error(*exchange, 404, "there is no " + request.path,
              "there are / (the page), " + list_routes(status_routes()));
}

void Server::finish(std::function<void()> on_done) {
  hub_.hurry();
  sessions_.hurry();
  const Clock::time_point until = Clock::now() + kFinishTime;
  auto look = [this, until, on_done = std::move(on_done)] {
    if (!finished() && Clock::now() < until) return;
    hub_.end_all();
    // The callback may drop us, and with us itself.
    const std::function<void()> done = on_done;
    finish_timer_.reset();
    done();
  };
  finish_timer_ = finished() ? Timer::start(loop_, Milliseconds(0), std::move(look))
                             : Timer::repeat(loop_, kFinishLook, std::move(look));
}

}  // namespace

Result<std::unique_ptr<StatusServer>> StatusServer::start(Loop& loop, Settings settings,
                                                          JobSource& source) {
  auto server = std::make_unique<Server>(loop, std::move(settings), source);
  if (Result<void> listening = server->listen(loop); !listening) return listening.error();
  return std::unique_ptr<StatusServer>(std::move(server));
}

std::string make_status_token() {
  return random_hex(kTokenBytes);
}

}  // namespace muster
