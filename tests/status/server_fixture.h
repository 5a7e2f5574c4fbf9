// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "diagnosis/run_program.h"
#include "loop/http_client.h"
#include "loop/loop_test.h"
#include "status/story_job.h"
#include "supervisor/status/sse_splitter.h"
#include "supervisor/status/status_server.h"

namespace muster {

// A message of an event stream, its data read.
struct Told {
  std::string event;
  std::string id;
  nlohmann::json data;
};

// An answer that goes on: what has come of it.
struct Streamed {
  int status = 0;
  std::string bytes;
  std::vector<Told> messages;
  bool ended = false;
  bool broken = false;  // its end did not come
  SseSplitter splitter;
  std::unique_ptr<HttpCall> call;

  void add(int with_status, std::string_view piece) {
    status = with_status;
    bytes += piece;
    splitter.add(piece);
    while (auto message = splitter.next()) {
      messages.push_back({message->event, message->id, nlohmann::json::parse(message->data)});
    }
  }
  const Told* last(const std::string& event) const {
    for (auto at = messages.rbegin(); at != messages.rend(); ++at)
      if (at->event == event) return &*at;
    return nullptr;
  }
  size_t count(const std::string& event) const {
    return static_cast<size_t>(std::count_if(messages.begin(), messages.end(),
                                             [&](const Told& m) { return m.event == event; }));
  }
};

// A job and the real server in front of it, asked by a real client over a real socket.
struct ServerTest : LoopTest {
  TestFolder folder;
  StoryJob job;
  std::string token = make_status_token();
  std::unique_ptr<StatusServer> server;
  std::unique_ptr<HttpClient> client;
  std::deque<Streamed> streams;

  void start() {
    job.told = job.story.events.size();
    StatusServer::Settings settings;
    settings.token = token;
    settings.host_name = "node-a";
    auto started = StatusServer::start(loop, settings, job);
    REQUIRE(started);
    server = std::move(*started);
    HttpClient::Server at;
    at.host = "127.0.0.1";
    at.port = port();
    client = std::make_unique<HttpClient>(loop, at);
  }

  int port() const {
    const std::string url = server->url();
    const size_t colon = url.rfind(':');
    return std::stoi(url.substr(colon + 1));
  }

  HttpResponse ask(HttpRequest request) {
    std::optional<Result<HttpResponse>> answer;
    auto call = client->send(std::move(request),
                             [&](Result<HttpResponse> got) { answer.emplace(std::move(got)); });
    REQUIRE(run_until([&] { return answer.has_value(); }));
    if (!*answer) FAIL(answer->error().message);
    return std::move(**answer);
  }
  HttpResponse get(const std::string& target, HttpHeaders headers = {}) {
    HttpRequest request;
    request.target = target;
    request.headers = std::move(headers);
    return ask(std::move(request));
  }
  HttpResponse post(const std::string& target, HttpHeaders headers = {}) {
    HttpRequest request;
    request.method = "POST";
    request.target = target;
    request.headers = std::move(headers);
    return ask(std::move(request));
  }
  nlohmann::json json(const std::string& target) {
    const HttpResponse answer = get(target);
    CAPTURE(answer.body);
    REQUIRE(answer.status == 200);
    REQUIRE(answer.header("content-type") == "application/json");
    return nlohmann::json::parse(answer.body);
  }

  Streamed& stream(const std::string& target, HttpHeaders headers = {}) {
    Streamed& streamed = streams.emplace_back();
    HttpRequest request;
    request.target = target;
    request.headers = std::move(headers);
    streamed.call = client->stream(
        std::move(request),
        [&streamed](int status, std::string_view piece) { streamed.add(status, piece); },
        [&streamed](Result<HttpResponse> done) {
          if (done && streamed.status == 0) streamed.status = done->status;
          streamed.broken = !done;
          streamed.ended = true;
        });
    return streamed;
  }
};

}  // namespace muster
