// SPDX-License-Identifier: Apache-2.0
//
// A connection is never freed inside its own functions: it asks to be retired, and goes a turn
// later. Only the handler may drop the whole server, and with it the connection, in the middle of a
// call, so nothing here touches `this` after the handler was called.
//
// Closing a socket that has unread bytes makes the kernel send a reset, which may overtake the last
// answer in the client. So a connection that ends on our wish says that nothing more comes and then
// reads on for a while (kLingering).
#include "loop/http_connection.h"

#include <algorithm>
#include <ctime>

#include "loop/http_answer.h"

namespace muster {

namespace {

// What a client may still send while it is shown its last answer.
constexpr size_t kMaxDiscarded = size_t{1} << 20;

size_t weight(const HttpServerRequest& request) {
  size_t sum = sizeof request + request.target.size() + request.path.size() + request.body.size();
  for (const auto& [name, value] : request.headers)
    sum += sizeof(request.headers[0]) + name.size() + value.size();
  for (const auto& [name, value] : request.query)
    sum += sizeof(request.query[0]) + name.size() + value.size();
  return sum;
}

}  // namespace

HttpConnection::HttpConnection(Loop& loop, Owner& owner, const HttpServer::Limits& limits,
                               const SocketAddress& peer)
    : loop_(loop),
      owner_(owner),
      limits_(limits),
      peer_(peer),
      parser_({limits.max_head, limits.max_body, limits.max_headers}),
      waiting_since_(Clock::now()) {}

Result<std::unique_ptr<HttpConnection>> HttpConnection::adopt(Loop& loop, Owner& owner,
                                                              const HttpServer::Limits& limits,
                                                              UniqueFd socket,
                                                              const SocketAddress& peer,
                                                              std::span<char> read_buffer) {
  std::unique_ptr<HttpConnection> connection(new HttpConnection(loop, owner, limits, peer));
  HttpConnection* raw = connection.get();
  raw->local_ = SocketAddress::local(socket.get());
  auto stream =
      TcpStream::adopt(loop, std::move(socket), read_buffer,
                       {[raw](std::string_view bytes) { raw->on_data(bytes); },
                        [raw](int code) { raw->on_end(code); }, [raw] { raw->on_drained(); }});
  if (!stream) return stream.error();
  raw->stream_ = std::move(*stream);
  raw->watch_time();
  return connection;
}

HttpConnection::~HttpConnection() {
  if (exchange_ != nullptr) std::exchange(exchange_, nullptr)->on_line_gone();
}

HttpConnection::Use HttpConnection::use() const {
  if (exchange_ != nullptr || !queue_.empty() || answers_held() > 0) return Use::kAnswering;
  return parser_.within_request() ? Use::kReading : Use::kIdle;
}

void HttpConnection::on_data(std::string_view bytes) {
  if (state_ == State::kOpen && refusal_.status == 0) {
    if (unread_.empty()) {
      read(bytes);
    } else {
      unread_ += bytes;
    }
    return go_on();
  }
  discarded_ += bytes.size();
  if (discarded_ > kMaxDiscarded) retire();
}

// Requests out of bytes, as many as may be read ahead.
void HttpConnection::read(std::string_view bytes) {
  const bool was_within = parser_.within_request();
  bool has_ended_one = false;
  while (!bytes.empty() && refusal_.status == 0 && queue_.size() < limits_.max_pipelined) {
    const HttpRequestParser::Progress progress = parser_.feed(bytes);
    if (progress == HttpRequestParser::Progress::kRefused) refusal_ = parser_.refusal();
    if (progress != HttpRequestParser::Progress::kComplete) continue;
    has_ended_one = true;
    queue_.push_back(parser_.take());
    queue_.back().request.peer = peer_;
    queue_.back().request.local = local_;
    queued_bytes_ += weight(queue_.back().request);
  }
  unread_ = refusal_.status == 0 ? std::string(bytes) : std::string();
  if (!was_within || has_ended_one) waiting_since_ = Clock::now();
  if (!owner_.on_held(*this) && refusal_.status == 0) {
    refusal_ = {503, "too much is being asked at once"};
    parser_.forget();
    queue_.clear();
    queued_bytes_ = 0;
    unread_ = {};
    owner_.on_held(*this);
  }
  if (stream_) stream_->set_reading(unread_.empty() && refusal_.status == 0 && !input_ended_);
}

// Does what can be done next. The last thing that any function does.
void HttpConnection::go_on() {
  if (state_ != State::kOpen) return;
  if (exchange_ != nullptr || answers_held() > 0) return watch_time();
  if (queue_.empty() && !unread_.empty()) read(std::exchange(unread_, {}));
  if (!queue_.empty()) return hand_over();
  if (refusal_.status != 0) return answer_refusal();
  if (input_ended_) return retire();
  if (parser_.take_wants_continue()) write("HTTP/1.1 100 Continue\r\n\r\n");
  watch_time();
}

void HttpConnection::hand_over() {
  HttpRequestParser::Parsed parsed = std::move(queue_.front());
  queue_.pop_front();
  queued_bytes_ = 0;
  for (const HttpRequestParser::Parsed& waiting : queue_)
    queued_bytes_ += weight(waiting.request);
  owner_.on_held(*this);
  auto exchange = std::make_unique<HttpServerExchange>(loop_, *this, std::move(parsed));
  exchange_ = exchange.get();
  watch_time();
  owner_.on_exchange(std::move(exchange));
}

void HttpConnection::answer_refusal() {
  const std::string body = http_error_body(refusal_.status, refusal_.why);
  HttpAnswerHead head;
  head.status = refusal_.status;
  head.headers = {{"Content-Type", "application/json"}};
  head.length = static_cast<int64_t>(body.size());
  head.keeps_alive = false;
  head.unix_time = static_cast<int64_t>(std::time(nullptr));
  write(http_head_text(head) + body);
  start_closing();
}

void HttpConnection::on_answered(bool keeps_alive) {
  exchange_ = nullptr;
  waiting_since_ = Clock::now();
  if (!keeps_alive) return start_closing();
  post_go_on();
}

void HttpConnection::on_answer_broken() {
  exchange_ = nullptr;
  cut();
}

void HttpConnection::cut() {
  if (stream_) stream_->cut_when_dropped();
  retire();
}

void HttpConnection::write(std::string_view bytes) {
  if (!stream_) return;
  const bool had_drained = answers_held() == 0;
  written_ += bytes.size();
  stream_->write(bytes);
  if (answers_held() == 0) return;
  if (had_drained) {
    stalled_since_ = Clock::now();
    seen_taken_ = written_ - answers_held();
    watch_time();
  }
  owner_.on_held(*this);
}

void HttpConnection::on_drained() {
  owner_.on_held(*this);
  if (state_ == State::kClosing) return linger();
  if (exchange_ != nullptr) return exchange_->on_drained();
  go_on();
}

void HttpConnection::on_end(int code) {
  // A second end is that of a connection that was only half closed before.
  const bool half_closed = code == 0 && !input_ended_ && state_ == State::kOpen;
  if (!half_closed || (exchange_ != nullptr && exchange_->is_endless())) return retire();
  // "printf ... | nc" has asked and waits for the answer.
  input_ended_ = true;
  stream_->set_reading(false);
  go_on();
}

void HttpConnection::start_closing() {
  if (state_ != State::kOpen) return;
  state_ = State::kClosing;
  queue_.clear();
  queued_bytes_ = 0;
  unread_ = {};
  owner_.on_held(*this);
  if (answers_held() == 0) return linger();
  stream_->set_reading(false);
  watch_time();
}

void HttpConnection::linger() {
  if (input_ended_) return retire();
  state_ = State::kLingering;
  waiting_since_ = Clock::now();
  stream_->finish_writing();
  stream_->set_reading(true);
  watch_time();
}

void HttpConnection::retire() {
  if (state_ == State::kRetired) return;
  state_ = State::kRetired;
  if (exchange_ != nullptr) std::exchange(exchange_, nullptr)->on_line_gone();
  timer_.reset();
  stream_.reset();
  owner_.retire(*this);
}

void HttpConnection::post_go_on() {
  loop_.post([this, alive = std::weak_ptr<int>(alive_)] {
    if (!alive.expired()) go_on();
  });
}

Clock::time_point HttpConnection::deadline() const {
  if (state_ == State::kLingering) return waiting_since_ + limits_.linger_time;
  if (answers_held() > 0) return stalled_since_ + limits_.write_time;
  if (exchange_ != nullptr || !queue_.empty()) return Clock::time_point::max();
  return waiting_since_ + (parser_.within_request() ? limits_.head_time : limits_.idle_time);
}

// One timer that is moved only to an earlier time: what is put off is seen when it fires.
void HttpConnection::watch_time() {
  if (state_ == State::kRetired) return;
  const Clock::time_point due = deadline();
  if (due == Clock::time_point::max() || (timer_ && timer_at_ <= due)) return;
  timer_at_ = due;
  const auto left = std::chrono::duration_cast<Milliseconds>(due - Clock::now());
  timer_ =
      Timer::start(loop_, std::max(left, Milliseconds(0)) + Milliseconds(1), [this] { on_time(); });
  timer_->unref();
}

void HttpConnection::note_progress() {
  const size_t taken = written_ - answers_held();
  if (std::exchange(seen_taken_, taken) != taken) stalled_since_ = Clock::now();
}

void HttpConnection::on_time() {
  timer_.reset();
  if (answers_held() > 0) note_progress();
  if (Clock::now() < deadline()) return watch_time();
  if (answers_held() > 0) return cut();
  if (state_ != State::kOpen || !parser_.within_request()) return retire();
  refusal_ = {408, "the request took too long to come"};
  stream_->set_reading(false);
  go_on();
}

}  // namespace muster
