// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "loop/http_message.h"
#include "loop/result.h"

namespace muster {

// Turns the bytes of one HTTP/1.1 response into a value, however they are split. Pure. Answers to
// HEAD and upgrades are not for it.
class HttpResponseParser {
 public:
  explicit HttpResponseParser(HttpLimits limits);
  ~HttpResponseParser();

  enum class Progress { kNeedsMore, kComplete };

  // An Error is final: the bytes are not HTTP or exceed a limit.
  Result<Progress> feed(std::string_view bytes);

  // The peer has closed: whether the response is whole without more bytes.
  Result<void> finish();

  bool has_head() const;

  // Whether the connection can carry another request. Known once the response is complete.
  bool keeps_alive() const;

  // The bytes of the body that came since it was last taken. Who does not want them all in memory
  // takes them after every feed.
  std::string take_body();

  // Status and headers, and the body as far as it was not taken.
  HttpResponse take_response();
  int status() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster
