// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "loop/http_exchange.h"
#include "loop/loop.h"
#include "loop/result.h"

namespace muster {

// An HTTP/1.1 server on the loop: keep-alive, pipelining (answers in order), HEAD, chunked bodies
// both ways. What is malformed, too large or too slow gets a 4xx or a close and costs nobody else
// anything. Knows no path and no right: those are the handler's. Dropping it closes everything.
class HttpServer {
 public:
  struct Limits {
    size_t max_head = size_t{16} << 10;  // request line and headers
    size_t max_body = size_t{64} << 10;
    size_t max_headers = 100;
    // Beyond it the longest idle one gives way. At most a quarter of the process's descriptors.
    size_t max_connections = 1'024;
    size_t max_pipelined = 16;        // requests read ahead of their answers
    Milliseconds head_time{10'000};   // from the first byte of a request to its last
    Milliseconds idle_time{75'000};   // between requests
    Milliseconds write_time{60'000};  // an answer of which the client takes nothing
    Milliseconds linger_time{2'000};  // for the client to take the last answer and close
    // Of all connections together: what has come of requests, and what the kernel has not taken of
    // answers. Beyond it the one that adds a request, or that stalls longest, is cut off.
    size_t max_requests_held = size_t{8} << 20;
    size_t max_answers_held = size_t{16} << 20;
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
