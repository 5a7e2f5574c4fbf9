// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "loop/http_client.h"
#include "loop/loop.h"
#include "loop/result.h"
#include "supervisor/cli/http_place.h"
#include "supervisor/commands/event_stream_reader.h"
#include "supervisor/commands/run_url.h"
#include "supervisor/status/run_source.h"
#include "supervisor/status/status_server.h"

namespace muster {

// A run's page served from its folder by this process.
class ServedFolder {
 public:
  // The error's code is what the command exits with.
  static Result<std::unique_ptr<ServedFolder>> start(Loop& loop, const std::string& run_dir,
                                                     const HttpPlace& place);

  RunSource& source() { return *source_; }
  std::string url() const { return server_->url(); }

 private:
  std::unique_ptr<RunSource> source_;
  std::unique_ptr<StatusServer> server_;  // uses the source
};

// Asks a run over HTTP: the live one at its address, or one that is left as a folder, which this
// process then serves to itself. So there is one way to ask, and the same answers.
class RunClient {
 public:
  // `run` as the user gave it. The error's code is what the command exits with.
  static Result<std::unique_ptr<RunClient>> open(Loop& loop, const std::string& run);

  // An answer that is not 200 is an error that says why.
  using OnBody = std::function<void(Result<std::string> body)>;
  std::unique_ptr<HttpCall> get(std::string target, OnBody on_body);

  // Has something done. It is not sent a second time.
  std::unique_ptr<HttpCall> post(std::string target, Milliseconds patience, OnBody on_body);

  // The body as it comes; `on_end` has an error if it is not the whole.
  using OnPiece = std::function<void(std::string_view piece)>;
  using OnEnd = std::function<void(Result<void> ended)>;
  std::unique_ptr<HttpCall> get_pieces(std::string target, OnPiece on_piece, OnEnd on_end);

  // An event stream; `last_id` "" begins anew. It ends with the run, or with an error.
  using OnMessage = std::function<void(const EventStreamReader::Message& message)>;
  std::unique_ptr<HttpCall> follow(std::string target, const std::string& last_id,
                                   OnMessage on_message, OnEnd on_end);

  // The same run again, whatever else begins: its folder or its whole address.
  const std::string& handle() const { return handle_; }

  // For people: the run's folder, or its address without the token.
  const std::string& name() const { return name_; }
  // Null if another process answers.
  ServedFolder* served() { return served_.get(); }

 private:
  RunClient(Loop& loop, const RunUrl& url, std::string name, std::unique_ptr<ServedFolder> served);
  HttpRequest request_for(std::string target) const;
  std::unique_ptr<HttpCall> send(HttpRequest request, OnBody on_body);
  Error unanswered(const Error& error) const;

  std::unique_ptr<ServedFolder> served_;
  RunUrl url_;
  std::string handle_;
  std::string name_;
  HttpClient client_;
};

}  // namespace muster
