// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "loop/http_exchange.h"

namespace muster {

// Answers to GET and HEAD about something that has a known size: whole or in part, as it is or
// compressed, or not at all because the client has it. Pure.

// Which part of `size` bytes a request asks for. Several ranges at once get everything, which the
// standard allows. With If-Range a part is given only if it is one of what `etag` names.
struct HttpRange {
  enum class Kind { kWhole, kPart, kUnsatisfiable } kind = Kind::kWhole;
  int64_t first = 0;
  int64_t count = 0;
};
HttpRange choose_range(const HttpServerRequest& request, int64_t size, std::string_view etag);

// "bytes 0-9/100" for a part, "bytes */100" for one that cannot be had.
std::string content_range(const HttpRange& range, int64_t size);

// Whether the client has what `etag` names already (If-None-Match).
bool client_has(const HttpServerRequest& request, std::string_view etag);

// Whether an answer may be compressed. Without Accept-Encoding it is not: the standard would allow
// it, but such a client shows the bytes as they are.
bool accepts_gzip(const HttpServerRequest& request);

// A whole content. Its ETag is made of `version`, which changes whenever the content does.
struct HttpContent {
  std::string_view bytes;
  bool gzipped = false;   // `bytes` are; who does not want that gets them unpacked
  std::string_view type;  // "text/html; charset=utf-8"
  std::string_view version;
};
struct HttpContentAnswer {
  int status = 200;
  HttpHeaders headers;
  std::string body;
};
HttpContentAnswer answer_content(const HttpServerRequest& request, const HttpContent& content);

}  // namespace muster
