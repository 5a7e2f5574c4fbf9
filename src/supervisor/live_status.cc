// SPDX-License-Identifier: Apache-2.0
#include "supervisor/live_status.h"

#include <utility>
#include <variant>

#include "supervisor/status/address_file.h"

namespace muster {

LiveStatus::LiveStatus(Loop& loop, LiveSource::Parts parts)
    : loop_(loop), plan_(parts.plan), source_(loop, std::move(parts)) {}

LiveStatus::~LiveStatus() {
  if (server_ && !source_.run_dir().empty()) remove_address_file(source_.run_dir());
}

Result<std::unique_ptr<LiveStatus>> LiveStatus::start(Loop& loop, LiveSource::Parts parts) {
  const HttpPlace& place = parts.plan.options.http;
  std::unique_ptr<LiveStatus> status(new LiveStatus(loop, std::move(parts)));
  if (!place.on) return status;
  if (Result<void> listening = status->listen(place); !listening) {
    if (place.asked) return listening.error();
    status->problem_ = listening.error().message;
  }
  return status;
}

Result<void> LiveStatus::listen(const HttpPlace& place) {
  StatusServer::Settings settings;
  settings.address = place.address;
  settings.port = place.port;
  settings.host_name = plan_.host;
  settings.token = make_status_token();
  auto server = StatusServer::start(loop_, std::move(settings), source_);
  if (!server) return server.error();
  server_ = std::move(*server);
  if (source_.run_dir().empty()) return {};
  // Without it only those who were told the address find the page.
  Result<void> written = write_address_file(source_.run_dir(), server_->url());
  if (!written) problem_ = written.error().message;
  return {};
}

std::optional<std::string> LiveStatus::observe(const Event& event) {
  source_.observe(event);
  if (!problem_.empty()) return "warning: " + std::exchange(problem_, "");
  return server_ ? announce(event) : std::nullopt;
}

// Of several nodes, one page shows them all; which one is known when they have met.
std::optional<std::string> LiveStatus::announce(const Event& event) {
  if (!plan_.rendezvous.several_nodes() || source_.hosting()) {
    if (std::exchange(told_whole_, true)) return std::nullopt;
    told_ = true;
    return "page " + server_->url();
  }
  if (!std::holds_alternative<event::AttemptStarted>(event.body) || std::exchange(told_, true)) {
    return std::nullopt;
  }
  return "page of this node alone " + server_->url();
}

void LiveStatus::handle_forwarded(std::unique_ptr<HttpExchange> exchange) {
  if (server_) return server_->handle_forwarded(std::move(exchange));
  exchange->reply(503, {}, "");
}

void LiveStatus::finish(std::function<void()> on_done) {
  if (server_) return server_->finish(std::move(on_done));
  timer_ = Timer::start(loop_, Milliseconds(0), std::move(on_done));
}

}  // namespace muster
