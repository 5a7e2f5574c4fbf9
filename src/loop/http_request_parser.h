// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "loop/http_chunks.h"
#include "loop/http_exchange.h"

namespace muster {

// Turns the bytes of HTTP/1.0 and 1.1 requests into values, however they are split. Pure. What two
// readers could take for different requests is refused, even where the standard lets one guess: all
// lines end with CR LF, a body has one length, a request one host.
class HttpRequestParser {
 public:
  struct Limits {
    size_t max_head;  // request line and headers; also chunk extensions and trailers
    size_t max_body;
    size_t max_headers;
  };
  explicit HttpRequestParser(Limits limits) : limits_(limits) {}

  enum class Progress { kNeedsMore, kComplete, kRefused };

  // Takes bytes from the front of `bytes`, not beyond the end of a request. When one is complete,
  // take() comes before the next feed().
  Progress feed(std::string_view& bytes);

  struct Parsed {
    HttpServerRequest request;  // without peer and local
    bool keeps_alive = false;
    bool http_1_0 = false;
  };
  Parsed take();

  // Why it was refused. Final: where the next request would begin is not known.
  struct Refusal {
    int status = 0;
    std::string_view why;
  };
  const Refusal& refusal() const { return refusal_; }

  // Whether a request has begun and is not whole.
  bool within_request() const { return within_; }
  // Whether the client waits for "100 Continue" before it sends the body; true once.
  bool take_wants_continue() { return std::exchange(wants_continue_, false); }
  // Drops what it keeps; nothing is fed any more.
  void forget() { refuse(503, "forgotten"); }
  // Bytes kept.
  size_t held() const { return head_.size() + read_head_ + parsed_.request.body.size(); }

 private:
  Progress refuse(int status, std::string_view why);
  Progress feed_head(std::string_view& bytes);
  Progress on_head();
  Progress feed_body(std::string_view& bytes);
  Progress feed_chunks(std::string_view& bytes);
  Refusal check_head() const;
  Refusal read_head();
  Refusal read_host(const std::string& authority);
  Refusal read_framing();

  const Limits limits_;
  std::string head_;
  Parsed parsed_;
  Refusal refusal_;
  size_t read_head_ = 0;  // bytes of the head that parsed_ was made of
  bool within_ = false;
  bool empty_line_ = false;  // one came before the request
  bool head_done_ = false;
  bool wants_continue_ = false;
  std::optional<HttpChunks> chunks_;
  uint64_t body_size_ = 0;
};

}  // namespace muster
