// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/request_desk.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "supervisor/rendezvous/forwarded_words.h"

namespace muster {

namespace {

// Unsent bytes of the connection at which answers wait. Heartbeats wait behind no more than that
// and one piece.
constexpr size_t kMaxUnsentForPieces = size_t{128} << 10;
// Sent bytes that a held answer may carry along before they are cut off.
constexpr size_t kMaxCarried = size_t{1} << 20;

constexpr int kBadRequest = 400;

}  // namespace

struct RequestDesk::Impl : std::enable_shared_from_this<Impl> {
  // An answer that is not over.
  struct Answering {
    std::weak_ptr<HttpExchange::Callbacks> callbacks;  // gone with the exchange
    std::string held;
    size_t sent = 0;  // of `held`
    int64_t credit = 0;
    bool begun = false;
    bool finished = false;
    bool awaits_drained = false;

    size_t left() const { return held.size() - sent; }
    bool may_go() const { return left() > 0 ? credit > 0 : finished; }
  };

  Impl(Loop& the_loop, Wire the_wire, Handler the_handler)
      : loop(the_loop), wire(std::move(the_wire)), handler(std::move(the_handler)) {}

  Answering* find(int64_t id) {
    const auto found = answers.find(id);
    return found == answers.end() ? nullptr : &found->second;
  }

  void begin(int64_t id, int status, const HttpHeaders& headers, int64_t length);
  void write(int64_t id, std::string_view piece);
  void finish(int64_t id);
  void break_off(int64_t id);
  void pump();
  void send_piece(int64_t id, Answering& answer);
  void drained(int64_t id);
  void gone(const Answering& answer);

  Loop& loop;
  const Wire wire;
  const Handler handler;
  std::map<int64_t, Answering> answers;
  int64_t last_id = 0;
  int64_t last_turn = 0;  // who sent the last piece
};

// Holds an id alone, so that it may outlive the desk and its connection.
class RequestDesk::Exchange final : public HttpExchange {
 public:
  Exchange(const std::shared_ptr<Impl>& desk, int64_t id, HttpServerRequest request)
      : desk_(desk), id_(id), request_(std::move(request)) {
    desk->answers.at(id).callbacks = callbacks_;
  }
  ~Exchange() override {
    if (auto desk = desk_.lock()) desk->break_off(id_);
  }

  const HttpServerRequest& request() const override { return request_; }
  void set_callbacks(Callbacks callbacks) override { *callbacks_ = std::move(callbacks); }
  void reply(int status, HttpHeaders headers, std::string body) override {
    begin(status, std::move(headers), static_cast<int64_t>(body.size()));
    write(body);
    finish();
  }
  void begin(int status, HttpHeaders headers, int64_t length) override {
    if (auto desk = desk_.lock()) desk->begin(id_, status, headers, length);
  }
  void write(std::string_view piece) override {
    if (auto desk = desk_.lock()) desk->write(id_, piece);
  }
  void finish() override {
    if (auto desk = desk_.lock()) desk->finish(id_);
  }
  size_t unsent() const override {
    auto desk = desk_.lock();
    const Impl::Answering* answer = desk ? desk->find(id_) : nullptr;
    return answer != nullptr ? answer->left() : 0;
  }

 private:
  const std::weak_ptr<Impl> desk_;
  const int64_t id_;
  const HttpServerRequest request_;
  const std::shared_ptr<Callbacks> callbacks_ = std::make_shared<Callbacks>();
};

void RequestDesk::Impl::begin(int64_t id, int status, const HttpHeaders& headers, int64_t length) {
  Answering* answer = find(id);
  if (answer == nullptr || std::exchange(answer->begun, true)) return;
  wire.send(message::Answer{id, status, headers_to_answer_with(headers), length});
}

void RequestDesk::Impl::write(int64_t id, std::string_view piece) {
  Answering* answer = find(id);
  if (answer == nullptr || !answer->begun || answer->finished) return;
  if (answer->left() + piece.size() > kMaxHeldAnswer) {
    gone(*answer);
    return break_off(id);
  }
  answer->held += piece;
  pump();
  // Pumping ends no answer that is not finished, so it is still there.
  answer->awaits_drained = answer->left() > 0;
}

void RequestDesk::Impl::finish(int64_t id) {
  Answering* answer = find(id);
  if (answer == nullptr || !answer->begun) return;
  answer->finished = true;
  pump();
}

void RequestDesk::Impl::break_off(int64_t id) {
  Answering* answer = find(id);
  // Nobody has to hold the exchange while the last bytes of a finished answer go out.
  if (answer == nullptr || answer->finished) return;
  answers.erase(id);
  wire.send(message::AnswerBroken{id});
}

// Sends what may go, one piece of each answer after the other.
void RequestDesk::Impl::pump() {
  while (wire.unsent() < kMaxUnsentForPieces) {
    auto may_go = [](const auto& entry) { return entry.second.may_go(); };
    auto next = std::find_if(answers.upper_bound(last_turn), answers.end(), may_go);
    if (next == answers.end()) next = std::find_if(answers.begin(), answers.end(), may_go);
    if (next == answers.end()) return;
    last_turn = next->first;
    if (next->second.left() > 0) {
      send_piece(next->first, next->second);
    } else {
      wire.send(message::AnswerEnd{next->first});
      answers.erase(next);
    }
  }
}

void RequestDesk::Impl::send_piece(int64_t id, Answering& answer) {
  const size_t size = std::min({answer.left(), kMaxPiece, static_cast<size_t>(answer.credit)});
  wire.send(message::Piece{id, answer.held.substr(answer.sent, size)});
  answer.sent += size;
  answer.credit -= static_cast<int64_t>(size);
  if (answer.left() > 0) {
    if (answer.sent < kMaxCarried) return;
    answer.held.erase(0, std::exchange(answer.sent, 0));
    return;
  }
  answer.held = std::string();  // an answer that only waits holds nothing
  answer.sent = 0;
  if (!std::exchange(answer.awaits_drained, false)) return;
  loop.post([weak = weak_from_this(), id] {
    if (auto desk = weak.lock()) desk->drained(id);
  });
}

void RequestDesk::Impl::drained(int64_t id) {
  const Answering* answer = find(id);
  if (answer == nullptr || answer->left() > 0) return;
  const auto callbacks = answer->callbacks.lock();
  // Copied: whoever is called may drop the exchange.
  if (auto on_drained = callbacks ? callbacks->on_drained : nullptr) on_drained();
}

// Never inside a call of the handler's, and not after it has dropped the exchange.
void RequestDesk::Impl::gone(const Answering& answer) {
  loop.post([weak = answer.callbacks] {
    const auto callbacks = weak.lock();
    if (auto on_gone = callbacks ? callbacks->on_gone : nullptr) on_gone();
  });
}

RequestDesk::RequestDesk(Loop& loop, Wire wire, Handler handler)
    : impl_(std::make_shared<Impl>(loop, std::move(wire), std::move(handler))) {}

RequestDesk::~RequestDesk() {
  hang_up();
}

const char* RequestDesk::take(message::Request request) {
  if (request.id <= impl_->last_id) return "it used a request's id again";
  if (impl_->answers.size() >= kMaxOpenRequests) return "it has too many requests open";
  impl_->last_id = request.id;
  const int64_t id = request.id;
  auto parsed = forwarded_request(std::move(request.target), std::move(request.headers));
  impl_->answers[id].credit = request.credit;
  auto exchange =
      std::make_unique<Exchange>(impl_, id, parsed ? std::move(*parsed) : HttpServerRequest());
  if (!parsed) {
    exchange->reply(kBadRequest, {}, "");
  } else if (impl_->handler) {
    impl_->handler(std::move(exchange));
  }
  return nullptr;
}

const char* RequestDesk::take(const message::Credit& credit) {
  Impl::Answering* answer = impl_->find(credit.id);
  // It may be over here and not yet there.
  if (answer == nullptr) {
    return credit.id > impl_->last_id ? "it gave credit to a request it never made" : nullptr;
  }
  if (answer->credit > static_cast<int64_t>(kMaxHeldAnswer)) return "it gave too much credit";
  answer->credit += credit.bytes;
  impl_->pump();
  return nullptr;
}

void RequestDesk::take(const message::Cancel& cancel) {
  auto found = impl_->answers.find(cancel.id);
  if (found == impl_->answers.end()) return;
  impl_->gone(found->second);
  impl_->answers.erase(found);
}

void RequestDesk::go_on() {
  impl_->pump();
}

void RequestDesk::hang_up() {
  for (auto& [id, answer] : std::exchange(impl_->answers, {}))
    impl_->gone(answer);
  impl_->last_id = 0;
}

size_t RequestDesk::open() const {
  return impl_->answers.size();
}

}  // namespace muster
