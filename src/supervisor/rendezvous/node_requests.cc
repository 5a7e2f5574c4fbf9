// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/node_requests.h"

#include <map>
#include <unordered_map>
#include <utility>

#include "loop/timer.h"
#include "supervisor/rendezvous/forwarded_words.h"

namespace muster {

namespace {

// What is consumed is told in such portions, not byte by byte.
constexpr size_t kCreditPortion = kRequestWindow / 4;

constexpr int kTooLong = 414;
constexpr int kBadGateway = 502;
constexpr int kTooMany = 503;
constexpr int kTooLate = 504;

}  // namespace

struct NodeRequests::Impl : std::enable_shared_from_this<Impl> {
  struct Open {
    std::string agent;
    std::weak_ptr<RemoteRequest::Callbacks> callbacks;  // gone with the handle
    bool headed = false;
    size_t allowed = kRequestWindow;  // bytes that the agent may still send
    size_t consumed = 0;              // and not told yet
    Owned<Timer> patience;
  };

  Impl(Loop& the_loop, Send the_send, Milliseconds the_head_patience)
      : loop(the_loop), send(std::move(the_send)), head_patience(the_head_patience) {}

  // The request of that agent, null if there is none. `why` is set if there never was one.
  Open* find(const std::string& agent, int64_t id, const char** why) {
    const auto found = requests.find(id);
    // A cancelled one's answer may be under way.
    if (found != requests.end() && found->second.agent == agent) return &found->second;
    if (found != requests.end() || id > last_id) *why = "it answered a request it never got";
    return nullptr;
  }
  void cancel(int64_t id);
  void consumed(int64_t id, size_t bytes);
  void break_off(int64_t id, int status, std::string why);
  // Of the agent itself, or of all if it is null.
  void break_all(const std::string* agent, const std::string& why);

  Loop& loop;
  const Send send;
  const Milliseconds head_patience;
  std::unordered_map<int64_t, Open> requests;
  std::unordered_map<std::string, size_t> open_at;
  std::map<std::pair<int, int>, std::string> places;  // attempt and node -> agent
  int64_t last_id = 0;

  void erase(int64_t id) {
    const auto found = requests.find(id);
    const auto count = open_at.find(found->second.agent);
    if (--count->second == 0) open_at.erase(count);
    requests.erase(found);
  }
};

class NodeRequests::Handle final : public RemoteRequest {
 public:
  Handle(const std::shared_ptr<Impl>& table, int64_t id, std::shared_ptr<Callbacks> callbacks)
      : table_(table), id_(id), callbacks_(std::move(callbacks)) {}
  ~Handle() override {
    if (auto table = table_.lock()) table->cancel(id_);
  }
  void consumed(size_t bytes) override {
    if (auto table = table_.lock()) table->consumed(id_, bytes);
  }

 private:
  const std::weak_ptr<Impl> table_;
  const int64_t id_;
  const std::shared_ptr<Callbacks> callbacks_;
};

void NodeRequests::Impl::cancel(int64_t id) {
  const auto found = requests.find(id);
  if (found == requests.end()) return;
  const std::string agent = found->second.agent;
  erase(id);
  send(agent, message::Cancel{id});
}

void NodeRequests::Impl::consumed(int64_t id, size_t bytes) {
  const auto found = requests.find(id);
  if (found == requests.end()) return;
  Open& open = found->second;
  open.consumed += bytes;
  if (open.consumed < kCreditPortion) return;
  open.allowed += open.consumed;
  send(open.agent, message::Credit{id, static_cast<int64_t>(std::exchange(open.consumed, 0))});
}

// Told from the loop, and not if the handle is dropped before.
void NodeRequests::Impl::break_off(int64_t id, int status, std::string why) {
  const auto weak = requests.at(id).callbacks;
  erase(id);
  loop.post([weak, status, why = std::move(why)] {
    const auto callbacks = weak.lock();
    if (auto on_broken = callbacks ? callbacks->on_broken : nullptr) on_broken(status, why);
  });
}

void NodeRequests::Impl::break_all(const std::string* agent, const std::string& why) {
  std::vector<int64_t> ids;
  for (const auto& [id, open] : requests) {
    if (agent == nullptr || open.agent == *agent) ids.push_back(id);
  }
  for (const int64_t id : ids)
    break_off(id, kBadGateway, why);
}

NodeRequests::NodeRequests(Loop& loop, Send send, Milliseconds head_patience)
    : impl_(std::make_shared<Impl>(loop, std::move(send), head_patience)) {}

NodeRequests::~NodeRequests() {
  impl_->break_all(nullptr, "the job has ended");
}

void NodeRequests::placed(int attempt, int node, const std::string& agent) {
  auto& places = impl_->places;
  places[{attempt, node}] = agent;
  // The oldest stand first.
  while (places.size() > kMaxPlaces && places.begin()->first.first < attempt)
    places.erase(places.begin());
}

std::string NodeRequests::agent_at(int attempt, int node) const {
  const auto& places = impl_->places;
  if (places.empty()) return "";
  const int wanted = attempt >= 0 ? attempt : places.rbegin()->first.first;
  const auto found = places.find({wanted, node});
  return found == places.end() ? "" : found->second;
}

Result<std::unique_ptr<RemoteRequest>> NodeRequests::start(const std::string& agent,
                                                           RemoteQuestion question,
                                                           RemoteRequest::Callbacks callbacks) {
  if (!is_target(question.target)) return Error{kTooLong, "the request's target is too long"};
  const auto count = impl_->open_at.find(agent);
  if (impl_->requests.size() >= kMaxForwardedRequests ||
      (count != impl_->open_at.end() && count->second >= kMaxOpenRequests)) {
    return Error{kTooMany, "too many requests to other nodes are open"};
  }
  const int64_t id = ++impl_->last_id;
  auto shared = std::make_shared<RemoteRequest::Callbacks>(std::move(callbacks));
  Impl::Open& open = impl_->requests[id];
  open.agent = agent;
  open.callbacks = shared;
  // Its owner owns the timer, so it cannot outlive the table.
  open.patience = Timer::start(impl_->loop, impl_->head_patience, [table = impl_.get(), id] {
    table->send(table->requests.at(id).agent, message::Cancel{id});
    table->break_off(id, kTooLate, "the node did not answer in time");
  });
  ++impl_->open_at[agent];
  impl_->send(agent, message::Request{id, std::move(question.target), std::move(question.headers),
                                      static_cast<int64_t>(kRequestWindow)});
  return std::unique_ptr<RemoteRequest>(new Handle(impl_, id, std::move(shared)));
}

const char* NodeRequests::take(const std::string& agent, const message::Answer& answer) {
  const char* wrong = nullptr;
  Impl::Open* open = impl_->find(agent, answer.id, &wrong);
  if (open == nullptr) return wrong;
  if (std::exchange(open->headed, true)) return "it answered a request twice";
  open->patience.reset();
  const auto callbacks = open->callbacks.lock();
  auto on_head = callbacks->on_head;
  on_head(answer.status, headers_to_answer_with(answer.headers), answer.length);
  return nullptr;
}

const char* NodeRequests::take(const std::string& agent, const message::Piece& piece) {
  const char* wrong = nullptr;
  Impl::Open* open = impl_->find(agent, piece.id, &wrong);
  if (open == nullptr) return wrong;
  if (!open->headed) return "it sent a piece of an answer before its head";
  if (piece.bytes.size() > open->allowed) return "it sent more of an answer than it may";
  open->allowed -= piece.bytes.size();
  const auto callbacks = open->callbacks.lock();
  auto on_piece = callbacks->on_piece;
  on_piece(piece.bytes);
  return nullptr;
}

const char* NodeRequests::take(const std::string& agent, const message::AnswerEnd& end) {
  const char* wrong = nullptr;
  Impl::Open* open = impl_->find(agent, end.id, &wrong);
  if (open == nullptr) return wrong;
  if (!open->headed) return "it ended an answer before its head";
  const auto callbacks = open->callbacks.lock();
  impl_->erase(end.id);
  auto on_end = callbacks->on_end;
  on_end();
  return nullptr;
}

const char* NodeRequests::take(const std::string& agent, const message::AnswerBroken& broken) {
  const char* wrong = nullptr;
  if (impl_->find(agent, broken.id, &wrong) == nullptr) return wrong;
  impl_->break_off(broken.id, kBadGateway, "the node gave up its answer");
  return nullptr;
}

void NodeRequests::gone(const std::string& agent) {
  if (impl_->open_at.contains(agent)) impl_->break_all(&agent, "the node is gone");
}

size_t NodeRequests::open() const {
  return impl_->requests.size();
}

}  // namespace muster
