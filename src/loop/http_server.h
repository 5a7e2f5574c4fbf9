// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "loop/http_message.h"
#include "loop/loop.h"
#include "loop/result.h"
#include "loop/socket_address.h"

namespace muster {

// One whole request: a request is handed over when its body has come.
struct HttpServerRequest {
  std::string method;  // "GET", "HEAD", "POST", ...
  std::string target;  // as it came: "/api/v1/job?pretty=1"
  std::string path;    // decoded, without the query; "." and ".." do not get this far
  std::vector<std::pair<std::string, std::string>> query;  // decoded, in order
  HttpHeaders headers;                                     // names in lower case
  std::string body;
  SocketAddress peer;
  SocketAddress local;

  // The first of that name (headers: in lower case), nothing if there is none.
  std::optional<std::string_view> header(std::string_view name) const;
  std::optional<std::string_view> parameter(std::string_view name) const;
  std::optional<std::string_view> cookie(std::string_view name) const;
};

// A request and the way to answer it: on a connection of the server, or brought from another node.
// Owned by the handler. Answer with reply(), or with begin(), write() and finish(). Dropped before
// its answer is whole, the connection is closed, so that nobody takes half an answer for a whole
// one; dropped unanswered, the client gets 500.
class HttpExchange {
 public:
  struct Callbacks {
    // Everything written so far has been taken by the kernel.
    std::function<void()> on_drained;
    // The client is gone, or the server is: nothing can be written any more. The last callback.
    std::function<void()> on_gone;
  };
  virtual ~HttpExchange() = default;

  virtual const HttpServerRequest& request() const = 0;
  virtual void set_callbacks(Callbacks callbacks) = 0;

  // The whole answer. Content-Length, Date, HEAD and keep-alive are the server's business.
  virtual void reply(int status, HttpHeaders headers, std::string body) = 0;

  // An answer in pieces; without a length (-1) its end is seen by chunks, or by the connection's.
  virtual void begin(int status, HttpHeaders headers, int64_t length = -1) = 0;
  virtual void write(std::string_view piece) = 0;
  virtual void finish() = 0;

  // Bytes written that the kernel has not taken. Whoever writes much waits for on_drained.
  virtual size_t unsent() const = 0;
};

// An HTTP/1.1 server on the loop: keep-alive, pipelining (answers in order), HEAD, chunked bodies
// both ways. What is malformed, too large or too slow gets a 4xx or a close and costs nobody else
// anything. Knows no path and no right: those are the handler's. Dropping it closes everything.
class HttpServer {
 public:
  struct Limits {
    size_t max_head = size_t{16} << 10;  // request line and headers
    size_t max_body = size_t{64} << 10;
    size_t max_headers = 100;
    size_t max_connections = 1'024;   // beyond it the longest idle one gives way
    size_t max_pipelined = 16;        // requests read ahead of their answers
    Milliseconds head_time{10'000};   // from the first byte of a request to its last
    Milliseconds idle_time{75'000};   // between requests
    Milliseconds write_time{60'000};  // an answer of which the client takes nothing
  };
  // From the loop, never from inside a call of this object or of an exchange; it may be dropped in
  // it.
  using Handler = std::function<void(std::unique_ptr<HttpExchange> exchange)>;

  // `address` is a literal; port 0 takes a free one. The error's code is that of bind.
  static Result<std::unique_ptr<HttpServer>> listen(Loop& loop, const std::string& address,
                                                    int port, Handler handler, Limits limits);
  static Result<std::unique_ptr<HttpServer>> listen(Loop& loop, const std::string& address,
                                                    int port, Handler handler);
  virtual ~HttpServer() = default;

  virtual int port() const = 0;
  virtual size_t connections() const = 0;

 protected:
  HttpServer() = default;
};

}  // namespace muster
