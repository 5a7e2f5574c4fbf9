// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/secured_exchange.h"

#include <strings.h>

#include <algorithm>
#include <string>
#include <utility>

namespace muster {

namespace {

struct Header {
  const char* name;
  const char* value;
};

// The page is made of files of its own alone, so that nothing inline is ever run. What is no page
// has nothing to run at all.
constexpr Header kHeaders[] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
     "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cache-Control", "no-store"},
};

HttpHeaders with_security(HttpHeaders headers) {
  for (const Header& header : kHeaders) {
    const bool there = std::any_of(headers.begin(), headers.end(), [&](const auto& given) {
      return ::strcasecmp(given.first.c_str(), header.name) == 0;
    });
    if (!there) headers.emplace_back(header.name, header.value);
  }
  return headers;
}

class SecuredExchange final : public HttpExchange {
 public:
  explicit SecuredExchange(std::unique_ptr<HttpExchange> inner) : inner_(std::move(inner)) {}

  const HttpServerRequest& request() const override { return inner_->request(); }
  void set_callbacks(Callbacks callbacks) override { inner_->set_callbacks(std::move(callbacks)); }
  void reply(int status, HttpHeaders headers, std::string body) override {
    inner_->reply(status, with_security(std::move(headers)), std::move(body));
  }
  void begin(int status, HttpHeaders headers, int64_t length) override {
    inner_->begin(status, with_security(std::move(headers)), length);
  }
  void write(std::string_view piece) override { inner_->write(piece); }
  void finish() override { inner_->finish(); }
  size_t unsent() const override { return inner_->unsent(); }

 private:
  std::unique_ptr<HttpExchange> inner_;
};

}  // namespace

std::unique_ptr<HttpExchange> secured(std::unique_ptr<HttpExchange> exchange) {
  return std::make_unique<SecuredExchange>(std::move(exchange));
}

}  // namespace muster
