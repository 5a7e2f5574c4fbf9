// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "loop/http_message.h"
#include "loop/loop.h"
#include "loop/result.h"
#include "loop/tls.h"

namespace muster {

struct HttpRequest {
  std::string method = "GET";  // not HEAD
  std::string target = "/";    // encoded as it goes on the wire
  HttpHeaders headers = {};    // besides Host and Content-Length
  std::string body = {};
  // From the call to the last byte of the answer; for a stream, which may last, until its first
  // byte.
  Milliseconds deadline{10'000};
  // A kept connection may have been closed by the server while our request was on its way. A
  // request that may be sent twice is then sent again over a new one.
  bool repeatable = true;
};

// One request under way. Dropping it cancels it and closes its connection; silent from there.
class HttpCall {
 public:
  virtual ~HttpCall() = default;

  // Our own address on the connection, "" before there is one.
  virtual std::string local_address() const = 0;
};

// Talks HTTP/1.1, with TLS if asked to, to one server, and keeps one connection open between
// requests. Calls at the same time have connections of their own. It may go before its calls.
class HttpClient {
 public:
  struct Server {
    std::string host;  // name or literal address
    int port = 0;
    std::shared_ptr<const TlsContext> tls;  // null: none
    Milliseconds connect_timeout{10'000};   // for each of the host's addresses
    HttpLimits limits;
  };
  HttpClient(Loop& loop, Server server);
  ~HttpClient();

  // Called once, from the loop. Any status is an answer; an Error says what failed on the way:
  // "resolve node-a: name not known", "connection refused", "no answer".
  using OnDone = std::function<void(Result<HttpResponse>)>;
  std::unique_ptr<HttpCall> send(HttpRequest request, OnDone on_done);

  // Hands over the body piece by piece; the response at the end has none.
  using OnPiece = std::function<void(int status, std::string_view piece)>;
  std::unique_ptr<HttpCall> stream(HttpRequest request, OnPiece on_piece, OnDone on_done);

 private:
  struct Shared;
  class Connection;
  class Call;
  std::shared_ptr<Shared> shared_;
};

}  // namespace muster
