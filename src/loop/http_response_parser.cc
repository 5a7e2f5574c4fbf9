// SPDX-License-Identifier: Apache-2.0
#include "loop/http_response_parser.h"

#include <llhttp.h>

#include <algorithm>

namespace muster {

struct HttpResponseParser::Impl {
  explicit Impl(HttpLimits with_limits) : limits(with_limits) {
    llhttp_settings_init(&settings);
    settings.on_status = [](llhttp_t* parser, const char*, size_t size) noexcept {
      return of(parser).count_head(size);
    };
    settings.on_header_field = [](llhttp_t* parser, const char* at, size_t size) noexcept {
      return of(parser).on_field({at, size});
    };
    settings.on_header_value = [](llhttp_t* parser, const char* at, size_t size) noexcept {
      return of(parser).on_value({at, size});
    };
    settings.on_headers_complete = [](llhttp_t* parser) noexcept {
      return of(parser).on_headers();
    };
    settings.on_body = [](llhttp_t* parser, const char* at, size_t size) noexcept {
      return of(parser).on_body({at, size});
    };
    settings.on_message_complete = [](llhttp_t* parser) noexcept {
      return of(parser).on_message();
    };
    llhttp_init(&parser, HTTP_RESPONSE, &settings);
    parser.data = this;
  }

  static Impl& of(llhttp_t* parser) { return *static_cast<Impl*>(parser->data); }

  int count_head(size_t size) {
    head_bytes += size;
    if (head_bytes <= limits.max_head) return 0;
    too_large = "head";
    return -1;
  }

  int on_field(std::string_view piece) {
    if (headers_done) return count_head(piece.size());  // a trailer: of no use to us
    size_t size = piece.size();
    if (!in_field) {
      response.headers.emplace_back();
      size += sizeof(response.headers[0]);  // an empty one costs memory too
    }
    in_field = true;
    std::string& name = response.headers.back().first;
    std::transform(piece.begin(), piece.end(), std::back_inserter(name),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    return count_head(size);
  }

  int on_value(std::string_view piece) {
    if (!headers_done) {
      in_field = false;
      if (!response.headers.empty()) response.headers.back().second.append(piece);
    }
    return count_head(piece.size());
  }

  int on_headers() {
    response.status = llhttp_get_status_code(&parser);
    in_field = false;
    headers_done = true;
    return 0;
  }

  int on_body(std::string_view piece) {
    if (piece.size() > limits.max_body - response.body.size()) {
      too_large = "body";
      return -1;
    }
    response.body.append(piece);
    return 0;
  }

  int on_message() {
    if (response.status / 100 == 1) {  // "100 Continue": the answer is still to come
      response = {};
      headers_done = false;
      return 0;
    }
    keeps_alive = llhttp_should_keep_alive(&parser) != 0;
    complete = true;
    return HPE_PAUSED;
  }

  Error trouble(llhttp_errno_t code) const {
    if (too_large) return Error{0, std::string("the answer's ") + too_large + " is too large"};
    const char* reason = llhttp_get_error_reason(&parser);
    return Error{0, std::string("the answer is not HTTP (") +
                        (reason && *reason ? reason : llhttp_errno_name(code)) + ")"};
  }

  HttpLimits limits;
  llhttp_settings_t settings;
  llhttp_t parser;
  HttpResponse response;
  size_t head_bytes = 0;
  const char* too_large = nullptr;
  bool in_field = false;
  bool headers_done = false;
  bool complete = false;
  bool keeps_alive = false;
};

HttpResponseParser::HttpResponseParser(HttpLimits limits) : impl_(std::make_unique<Impl>(limits)) {}

HttpResponseParser::~HttpResponseParser() = default;

Result<HttpResponseParser::Progress> HttpResponseParser::feed(std::string_view bytes) {
  if (impl_->complete) {
    impl_->keeps_alive = impl_->keeps_alive && bytes.empty();
    return Progress::kComplete;
  }
  llhttp_errno_t code = llhttp_execute(&impl_->parser, bytes.data(), bytes.size());
  if (impl_->complete) {
    // Bytes behind the answer were asked for by nobody: the next answer would be theirs.
    const char* end = llhttp_get_error_pos(&impl_->parser);
    if (end != nullptr && end != bytes.data() + bytes.size()) impl_->keeps_alive = false;
    return Progress::kComplete;
  }
  if (code != HPE_OK) return impl_->trouble(code);
  return Progress::kNeedsMore;
}

Result<void> HttpResponseParser::finish() {
  if (impl_->complete) return {};
  llhttp_errno_t code = llhttp_finish(&impl_->parser);
  impl_->keeps_alive = false;
  if (impl_->complete) return {};
  if (code != HPE_OK && code != HPE_PAUSED && code != HPE_INVALID_EOF_STATE)
    return impl_->trouble(code);
  return Error{0, impl_->headers_done ? "the connection ended within the answer"
                                      : "the connection ended before the answer"};
}

bool HttpResponseParser::has_head() const {
  return impl_->headers_done;
}

bool HttpResponseParser::keeps_alive() const {
  return impl_->complete && impl_->keeps_alive;
}

std::string HttpResponseParser::take_body() {
  return std::exchange(impl_->response.body, {});
}

HttpResponse HttpResponseParser::take_response() {
  return std::exchange(impl_->response, {});
}

int HttpResponseParser::status() const {
  return impl_->response.status;
}

}  // namespace muster
