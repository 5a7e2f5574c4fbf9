// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "loop/http_message.h"
#include "loop/socket_address.h"

namespace muster {

// One whole request: a request is handed over when its body has come. Path and query are UTF-8 and
// have no NUL; header values may have any bytes that are not control characters.
struct HttpServerRequest {
  std::string method;  // "GET", "HEAD", "POST", ...
  std::string target;  // as it came: "/api/v1/job?pretty=1"
  std::string path;    // decoded, without the query; "." and ".." do not get this far
  std::vector<std::pair<std::string, std::string>> query;  // decoded, in order
  HttpHeaders headers;                                     // names in lower case, one "host"
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
// one; dropped unanswered, the client gets 500. It calls back from the loop, never inside a call,
// and may be dropped in its callbacks.
class HttpExchange {
 public:
  struct Callbacks {
    // Everything written so far has been taken by the kernel. Comes only after unsent() was not 0.
    std::function<void()> on_drained;
    // The client is gone, or the server is, or it wants no more (HEAD): nothing can be written any
    // more. The last callback.
    std::function<void()> on_gone;
  };
  virtual ~HttpExchange() = default;

  virtual const HttpServerRequest& request() const = 0;
  virtual void set_callbacks(Callbacks callbacks) = 0;

  // The whole answer. Content-Length, Date, HEAD and keep-alive are the server's business. Header
  // names are sent as they are given; control characters in values become spaces.
  virtual void reply(int status, HttpHeaders headers, std::string body) = 0;

  // An answer in pieces; without a length (-1) its end is seen by chunks, or by the connection's.
  virtual void begin(int status, HttpHeaders headers, int64_t length = -1) = 0;
  virtual void write(std::string_view piece) = 0;
  virtual void finish() = 0;

  // Bytes written that the kernel has not taken. Whoever writes much waits for on_drained.
  virtual size_t unsent() const = 0;
};

}  // namespace muster
