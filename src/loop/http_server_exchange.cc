// SPDX-License-Identifier: Apache-2.0
//
// What is written may be too much for the server, which then cuts the connection inside write(): so
// line_ is looked at again behind each.
#include "loop/http_server_exchange.h"

#include <array>
#include <charconv>
#include <ctime>

#include "loop/http_answer.h"

namespace muster {

namespace {

std::string hex(size_t number) {
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16);
  return {digits.data(), end.ptr};
}

}  // namespace

HttpServerExchange::~HttpServerExchange() {
  if (line_ == nullptr) return;
  if (begun_) {
    line_->on_answer_broken();
    return;
  }
  constexpr int kStatus = 500;
  HttpServerExchange::reply(kStatus, {{"Content-Type", "application/json"}},
                            http_error_body(kStatus, "nobody answered this request"));
}

void HttpServerExchange::set_callbacks(Callbacks callbacks) {
  callbacks_ = std::make_shared<Callbacks>(std::move(callbacks));
}

void HttpServerExchange::reply(int status, HttpHeaders headers, std::string body) {
  if (!start(status, std::move(headers), static_cast<int64_t>(body.size()))) return;
  if (has_body_) head_ += body;
  line_->write(std::exchange(head_, {}));
  end();
}

void HttpServerExchange::begin(int status, HttpHeaders headers, int64_t length) {
  if (!start(status, std::move(headers), length)) return;
  line_->write(std::exchange(head_, {}));
  if (has_body_) return;
  // Nobody wants the rest: whoever makes it learns that as if the client had gone.
  end();
  post_gone();
}

void HttpServerExchange::write(std::string_view piece) {
  if (line_ == nullptr || !begun_ || piece.empty()) return;
  if (length_ >= 0) {
    piece = piece.substr(0, static_cast<size_t>(length_ - sent_));
    sent_ += static_cast<int64_t>(piece.size());
    line_->write(piece);
  } else if (parsed_.http_1_0) {
    line_->write(piece);
  } else {
    std::string chunk = hex(piece.size());
    chunk.reserve(chunk.size() + piece.size() + 4);
    chunk += "\r\n";
    chunk += piece;
    line_->write(chunk += "\r\n");
  }
}

void HttpServerExchange::finish() {
  if (line_ == nullptr || !begun_) return;
  if (length_ >= 0 && sent_ < length_) {  // the client must not wait for more
    std::exchange(line_, nullptr)->on_answer_broken();
    return post_gone();
  }
  if (length_ < 0 && !parsed_.http_1_0) line_->write("0\r\n\r\n");
  end();
}

void HttpServerExchange::on_drained() {
  if (!callbacks_ || !callbacks_->on_drained) return;
  const std::shared_ptr<Callbacks> keep = callbacks_;
  keep->on_drained();
}

void HttpServerExchange::on_line_gone() {
  line_ = nullptr;
  post_gone();
}

// False: it cannot be answered any more. True: head_ is what goes out first.
bool HttpServerExchange::start(int status, HttpHeaders headers, int64_t length) {
  if (line_ == nullptr || begun_) return false;
  begun_ = true;
  length_ = length;
  keeps_alive_ = parsed_.keeps_alive && !line_->input_ended() && !(parsed_.http_1_0 && length < 0);
  has_body_ = parsed_.request.method != "HEAD" && !http_has_no_body(status);
  head_ = http_head_text({status, std::move(headers), length, keeps_alive_, parsed_.http_1_0,
                          static_cast<int64_t>(std::time(nullptr))});
  return true;
}

void HttpServerExchange::end() {
  if (line_ != nullptr) std::exchange(line_, nullptr)->on_answered(keeps_alive_);
}

void HttpServerExchange::post_gone() {
  if (std::exchange(gone_, true)) return;
  loop_.post([this, alive = std::weak_ptr<int>(alive_)] {
    if (alive.expired() || !callbacks_ || !callbacks_->on_gone) return;
    const std::shared_ptr<Callbacks> keep = callbacks_;
    keep->on_gone();
  });
}

}  // namespace muster
