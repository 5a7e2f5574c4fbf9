// SPDX-License-Identifier: Apache-2.0
#include "supervisor/commands/run_client.h"

#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "supervisor/commands/exit_codes.h"
#include "supervisor/commands/find_run.h"
#include "supervisor/commands/json_get.h"
#include "supervisor/diagnosis/text_lines.h"
#include "supervisor/logs/run_folder.h"
#include "supervisor/status/address_file.h"

namespace muster {

namespace {

constexpr size_t kMaxBody = size_t{64} << 20;
constexpr Milliseconds kPatience{30'000};

// The message of an error answer, as docs/api.md has it.
Error refused(const std::string& name, const HttpResponse& response, std::string_view body) {
  std::string message = "status " + std::to_string(response.status);
  const auto json = nlohmann::json::parse(body, nullptr, false);
  const auto& error = json_part(json, "error");
  message = clean_line(json_get(error, "message", message));
  const std::string hint = json_text(error, "hint");
  if (!hint.empty()) message += "; " + clean_line(hint);
  const bool unknown = response.status == 404 || response.status == 410;
  const int code = unknown ? kExitNoRun : response.status == 400 ? kExitUsage : kExitNoAnswer;
  return Error{code, name + ": " + message};
}

// Whether a loopback address in another machine's file would lead to somebody else here.
bool reachable(const RunAddress& address, const RunUrl& url) {
  const bool loopback =
      url.host == "localhost" || url.host == "::1" || url.host.starts_with("127.");
  return !loopback || address.host == this_host();
}

}  // namespace

Result<std::unique_ptr<ServedFolder>> ServedFolder::start(Loop& loop, const std::string& run_dir,
                                                          const HttpPlace& place) {
  auto served = std::make_unique<ServedFolder>();
  Result<std::unique_ptr<RunSource>> source = RunSource::open(loop, run_dir);
  if (!source) {
    const bool denied = source.error().code == EACCES || source.error().code == EPERM;
    return Error{denied ? kExitNoAnswer : kExitNoRun, source.error().message};
  }
  served->source_ = std::move(*source);
  StatusServer::Settings settings;
  settings.address = place.address;
  settings.port = place.port;
  settings.host_name = this_host();
  settings.token = make_status_token();
  auto server = StatusServer::start(loop, std::move(settings), *served->source_);
  if (!server) return Error{kExitBad, server.error().message};
  served->server_ = std::move(*server);
  return served;
}

Result<std::unique_ptr<RunClient>> RunClient::open(Loop& loop, const std::string& run) {
  auto client_at = [&loop](const RunUrl& url, std::string handle,
                           std::unique_ptr<ServedFolder> served) {
    return std::unique_ptr<RunClient>(
        new RunClient(loop, url, std::move(handle), std::move(served)));
  };
  if (looks_like_url(run)) {
    Result<RunUrl> url = parse_run_url(run);
    if (!url) return Error{kExitNoRun, url.error().message};
    return client_at(*url, run, nullptr);
  }
  Result<std::string> folder = find_run(run, default_run_bases());
  if (!folder) return Error{kExitNoRun, folder.error().message};
  const std::optional<RunAddress> address = read_address_file(*folder);
  if (address && run_lives(*folder)) {
    Result<RunUrl> url = parse_run_url(address->url);
    if (url && reachable(*address, *url)) return client_at(*url, *folder, nullptr);
  }
  auto served = ServedFolder::start(loop, *folder, HttpPlace{});
  if (!served) return served.error();
  Result<RunUrl> url = parse_run_url((*served)->url());
  MUST(url.has_value());
  std::string folder_path = (*served)->source().run_dir();
  return client_at(*url, std::move(folder_path), std::move(*served));
}

RunClient::RunClient(Loop& loop, const RunUrl& url, std::string handle,
                     std::unique_ptr<ServedFolder> served)
    : served_(std::move(served)),
      url_(url),
      handle_(std::move(handle)),
      name_(looks_like_url(handle_) ? handle_.substr(0, handle_.find_first_of("?#")) : handle_),
      client_(
          loop,
          {.host = url.host, .port = url.port, .tls = nullptr, .limits = {.max_body = kMaxBody}}) {}

HttpRequest RunClient::request_for(std::string target) const {
  HttpRequest request;
  request.target = std::move(target);
  request.deadline = kPatience;
  if (!url_.token.empty()) request.headers.emplace_back("Authorization", "Bearer " + url_.token);
  return request;
}

Error RunClient::unanswered(const Error& error) const {
  return Error{kExitNoAnswer, name_ + ": " + error.message};
}

std::unique_ptr<HttpCall> RunClient::get(std::string target, OnBody on_body) {
  return send(request_for(std::move(target)), std::move(on_body));
}

std::unique_ptr<HttpCall> RunClient::post(std::string target, Milliseconds patience,
                                          OnBody on_body) {
  HttpRequest request = request_for(std::move(target));
  request.method = "POST";
  request.deadline = patience;
  request.repeatable = false;
  return send(std::move(request), std::move(on_body));
}

std::unique_ptr<HttpCall> RunClient::send(HttpRequest request, OnBody on_body) {
  return client_.send(std::move(request),
                      [this, on_body = std::move(on_body)](Result<HttpResponse> response) {
                        if (!response) return on_body(unanswered(response.error()));
                        if (response->status != 200) {
                          return on_body(refused(name_, *response, response->body));
                        }
                        on_body(std::move(response->body));
                      });
}

std::unique_ptr<HttpCall> RunClient::get_pieces(std::string target, OnPiece on_piece,
                                                OnEnd on_end) {
  auto refusal = std::make_shared<std::string>();
  return client_.stream(
      request_for(std::move(target)),
      [refusal, on_piece = std::move(on_piece)](int status, std::string_view piece) {
        if (status == 200) return on_piece(piece);
        if (refusal->size() < kMaxBody) *refusal += piece;
      },
      [this, refusal, on_end = std::move(on_end)](Result<HttpResponse> response) {
        if (!response) return on_end(unanswered(response.error()));
        if (response->status != 200) return on_end(refused(name_, *response, *refusal));
        on_end({});
      });
}

std::unique_ptr<HttpCall> RunClient::follow(std::string target, const std::string& last_id,
                                            OnMessage on_message, OnEnd on_end) {
  HttpRequest request = request_for(std::move(target));
  request.headers.emplace_back("Accept", "text/event-stream");
  if (!last_id.empty()) request.headers.emplace_back("Last-Event-ID", last_id);
  struct Shared {
    EventStreamReader reader;
    std::string refusal;
  };
  auto shared = std::make_shared<Shared>();
  return client_.stream(
      std::move(request),
      [shared, on_message = std::move(on_message)](int status, std::string_view piece) {
        if (status != 200) {
          shared->refusal += piece.substr(0, kMaxBody - shared->refusal.size());
          return;
        }
        for (const EventStreamReader::Message& message : shared->reader.take(piece))
          on_message(message);
      },
      [this, shared, on_end = std::move(on_end)](Result<HttpResponse> response) {
        if (!response) return on_end(unanswered(response.error()));
        if (response->status != 200) return on_end(refused(name_, *response, shared->refusal));
        on_end({});
      });
}

}  // namespace muster
