// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "loop/http_server.h"
#include "loop/loop.h"
#include "loop/result.h"
#include "supervisor/status/job_source.h"

namespace muster {

// Shows a job over HTTP: /status, the versioned API, metrics and the page (docs/api.md). Owned by
// whoever owns the JobSource, which outlives it.
class StatusServer {
 public:
  struct Settings {
    std::string address = "127.0.0.1";  // a literal
    int port = 0;
    std::string host_name;  // by which browsers may call this machine besides the address
    std::string token;      // made by make_status_token()
  };

  // The error says what to do: "http: bind 0.0.0.0:8080: address already in use; ...".
  static Result<std::unique_ptr<StatusServer>> start(Loop& loop, Settings settings,
                                                     JobSource& source);
  virtual ~StatusServer() = default;

  // "http://127.0.0.1:34521/?token=...", for people.
  virtual std::string url() const = 0;

  // A request that another node's muster sent us over the control connection. It has been
  // authenticated there; reading is all it may do.
  virtual void handle_forwarded(std::unique_ptr<HttpExchange> exchange) = 0;

  // The job is over and everything about it is in the state and in its files: whoever watches gets
  // the rest. Calls back, from the loop, when they have it or after kFinishTime, at once if nobody
  // watches. Whoever asks meanwhile is answered.
  static constexpr Milliseconds kFinishTime{1'000};
  virtual void finish(std::function<void()> on_done) = 0;

 protected:
  StatusServer() = default;
};

// 128 random bits in hexadecimal.
std::string make_status_token();

}  // namespace muster
