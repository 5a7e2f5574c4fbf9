// SPDX-License-Identifier: Apache-2.0
#include "store/session.h"

namespace muster {

namespace {

// Capacity that an idle session may keep for the beginnings of requests.
constexpr size_t kKeptCapacity = 4096;

constexpr std::string_view kStop("\0", 1);

constexpr const char* kUnread = "it does not read its replies";

}  // namespace

bool StoreState::set(std::string_view key, std::string_view value) {
  // A session without a peer: nothing can come back to it.
  struct Nowhere final : Replies {
    using Replies::Replies;
    bool full() const override { return false; }
    bool overflowed() const override { return false; }
    void send(std::string_view) override {}
  };
  std::string unused;
  Nowhere replies(unused);
  return Session(*this, kNobody).set(key, value, replies);
}

void StoreState::clear() {
  table.clear();
  waits.clear();
  watches.clear();
}

// Tells the watchers of a key what a change did to it. Made before the change, asked to tell after
// it; costs nothing when no 1.13 client watches.
class Session::Change {
 public:
  Change(StoreState& state, std::string_view key) : state_(state), key_(key) {
    if (state.watches.empty()) return;
    watchers_ = state.watches.watchers(key);
    if (watchers_ == nullptr) return;
    if (const std::string* value = state.table.find(key)) {
      existed_ = true;
      before_ = *value;
    }
  }

  // Among the session's own replies if the session watches too.
  void tell(Replies& replies, ClientId own) {
    if (watchers_ == nullptr) return;
    const std::string* after = state_.table.find(key_);
    KeyEvent event = !after     ? KeyEvent::kDeleted
                     : existed_ ? KeyEvent::kUpdated
                                : KeyEvent::kCreated;
    const std::string bytes =
        encode_key_event(event, key_, before_, after ? std::string_view(*after) : "");
    for (ClientId watcher : *watchers_) {
      if (watcher == own) {
        replies.put_bytes(bytes);
      } else {
        state_.outbox.send(watcher, bytes);
      }
    }
  }

 private:
  StoreState& state_;
  std::string_view key_;
  const std::vector<ClientId>* watchers_ = nullptr;
  bool existed_ = false;
  std::string before_;
};

Session::~Session() {
  state_.waits.cancel(id_);
  state_.watches.forget(id_);
}

bool Session::refuse(std::string why) {
  why_ = std::move(why);
  return false;
}

bool Session::feed(std::string_view bytes, Replies& replies) {
  stalled_ = false;
  size_t used = 0;
  if (pending_.empty()) {
    if (!consume(bytes, replies, &used)) {
      if (stranger_) pending_.assign(bytes);
      return false;
    }
    if (used < bytes.size()) pending_.assign(bytes.substr(used));
    return true;
  }
  pending_.append(bytes);
  if (!consume(pending_, replies, &used)) return false;
  if (used < pending_.size()) {
    pending_.erase(0, used);
  } else {
    pending_.clear();
    if (pending_.capacity() > kKeptCapacity) pending_.shrink_to_fit();
  }
  return true;
}

bool Session::consume(std::string_view bytes, Replies& replies, size_t* used) {
  if (phase_ == Phase::kGreeting && !greet(bytes, used)) return false;
  if (phase_ == Phase::kGreeting) return true;
  Request request;
  while (*used < bytes.size()) {
    if (replies.full()) {
      stalled_ = true;
      return true;
    }
    switch (decoder_.decode(bytes.substr(*used), &request)) {
      case Decoded::kNeedMore:
        return true;
      case Decoded::kMalformed:
        return refuse(decoder_.why());
      case Decoded::kRequest:
        break;
    }
    ++state_.requests;
    if (!execute(request, replies)) return false;
    if (replies.overflowed()) return refuse(kUnread);
    *used += request.size;
  }
  return true;
}

bool Session::undecided() const {
  return phase_ == Phase::kGreeting && (pending_.empty() || pending_[0] == kControlPreamble[0]);
}

bool Session::refuse_unknown(std::string_view bytes) {
  return refuse("not a store client: it began with byte " +
                std::to_string(static_cast<uint8_t>(bytes[0])));
}

bool Session::greet_stranger(std::string_view bytes) {
  const std::string_view first = bytes.substr(0, kControlPreamble.size());
  if (!kControlPreamble.starts_with(first)) return refuse_unknown(bytes);
  stranger_ = first.size() == kControlPreamble.size();
  return !stranger_;
}

bool Session::greet(std::string_view bytes, size_t* used) {
  if (state_.strangers && bytes.starts_with(kControlPreamble[0])) return greet_stranger(bytes);
  switch (recognise(bytes)) {
    case Greeting::kNeedMore:
      return true;
    case Greeting::kUnknown:
      return refuse_unknown(bytes);
    case Greeting::kCurrent:
      *used = kGreetingSize;
      break;
    case Greeting::kLegacy:
      dialect_ = Dialect::kLegacy;
      decoder_.set_dialect(dialect_);
      break;
  }
  phase_ = Phase::kOpen;
  if (!state_.objection) return true;
  std::optional<std::string> why = state_.objection(id_);
  return !why || refuse(std::move(*why));
}

bool Session::execute(const Request& request, Replies& replies) {
  StringReader strings = request.strings();
  given_up_ = request.query == Query::kCancelWait ? waited_for() : "";
  switch (request.query) {
    case Query::kValidate:
      return refuse("a second VALIDATE");
    case Query::kPing:
      client_pid_ = static_cast<uint32_t>(request.number) & ~kPingMark;
      replies.put_int(static_cast<uint32_t>(request.number));
      return true;
    case Query::kGet: {
      const std::string* value = state_.table.find(strings.next());
      replies.put_string(value ? std::string_view(*value) : "");
      return true;
    }
    case Query::kSet: {
      std::string_view key = strings.next();
      return set(key, strings.next(), replies);
    }
    case Query::kAdd:
      return add(request, replies);
    case Query::kCompareSet:
      return compare_set(request, replies);
    case Query::kAppend:
      return append(request, replies);
    case Query::kMultiGet:
      return multi_get(request, replies);
    case Query::kMultiSet:
      return multi_set(request, replies);
    case Query::kDeleteKey:
      return erase(request, replies);
    case Query::kCheck:
      replies.put_int(all_exist(request) ? kReady : kNotReady);
      return true;
    case Query::kWait:
      wait(request, replies);
      return true;
    case Query::kCancelWait:
      state_.waits.cancel(id_);
      replies.put_int(kWaitCanceled);
      return true;
    case Query::kBarrier:
      return barrier(request, replies);
    case Query::kQueuePush:
      return queue_push(request, replies);
    case Query::kQueuePop:
      return queue_pop(request, replies);
    case Query::kQueueLength:
      replies.put_int(state_.table.queue_length(strings.next()));
      return true;
    case Query::kGetNumKeys:
      replies.put_int(state_.table.size());
      return true;
    case Query::kListKeys:
      return list_keys(replies);
    case Query::kWatchKey:
      return watch(request, replies);
  }
  return refuse("unknown query");
}

void Session::send_stop(const std::vector<ClientId>& woken, Replies& replies) {
  for (ClientId client : woken) {
    // A peer that did not await its WAIT may wake itself.
    if (client == id_) {
      replies.put_int(kStopWaiting);
    } else {
      state_.outbox.send(client, kStop);
    }
  }
}

void Session::wake(std::string_view key, Replies& replies) {
  if (state_.waits.empty()) return;
  std::vector<ClientId> woken;
  state_.waits.wake_all(key, woken);
  send_stop(woken, replies);
}

bool Session::set(std::string_view key, std::string_view value, Replies& replies) {
  Change change(state_, key);
  if (!state_.table.set(key, value)) return refuse("the store is full");
  change.tell(replies, id_);
  wake(key, replies);
  return true;
}

bool Session::multi_set(const Request& request, Replies& replies) {
  StringReader strings = request.strings();
  for (uint64_t i = 0; i < request.count; ++i) {
    std::string_view key = strings.next();
    if (!set(key, strings.next(), replies)) return false;
  }
  return true;
}

bool Session::append(const Request& request, Replies& replies) {
  StringReader strings = request.strings();
  std::string_view key = strings.next();
  Change change(state_, key);
  if (!state_.table.append(key, strings.next())) return refuse("APPEND makes a value too large");
  change.tell(replies, id_);
  wake(key, replies);
  return true;
}

bool Session::add(const Request& request, Replies& replies) {
  std::string_view key = request.strings().next();
  Change change(state_, key);
  std::optional<int64_t> sum = state_.table.add(key, request.number);
  if (!sum) return refuse("ADD to a value that is no number");
  replies.put_int(*sum);
  change.tell(replies, id_);
  wake(key, replies);
  return true;
}

bool Session::compare_set(const Request& request, Replies& replies) {
  StringReader strings = request.strings();
  std::string_view key = strings.next();
  std::string_view expected = strings.next();
  Change change(state_, key);
  Table::Compared compared = state_.table.compare_set(key, expected, strings.next());
  if (compared.full) return refuse("the store is full");
  replies.put_string(compared.value);
  if (!compared.stored) return true;
  change.tell(replies, id_);
  wake(key, replies);
  return true;
}

bool Session::multi_get(const Request& request, Replies& replies) {
  StringReader strings = request.strings();
  for (uint64_t i = 0; i < request.count; ++i) {
    const std::string* value = state_.table.find(strings.next());
    replies.put_string(value ? std::string_view(*value) : "");
    if (replies.overflowed()) return refuse(kUnread);
  }
  return true;
}

bool Session::erase(const Request& request, Replies& replies) {
  std::string_view key = request.strings().next();
  Change change(state_, key);
  const bool erased = state_.table.erase(key);
  replies.put_int<int64_t>(erased ? 1 : 0);
  if (erased) change.tell(replies, id_);
  return true;
}

bool Session::barrier(const Request& request, Replies& replies) {
  std::string_view key = request.strings().next();
  Change change(state_, key);
  std::optional<int64_t> count = state_.table.add(key, 1);
  if (!count) return refuse("BARRIER on a value that is no number");
  change.tell(replies, id_);
  if (*count >= request.number) {
    wake(key, replies);
    replies.put_int(kStopWaiting);
  } else {
    state_.waits.wait(id_, {key}, true, Clock::now());
  }
  return true;
}

bool Session::all_exist(const Request& request) const {
  StringReader strings = request.strings();
  for (uint64_t i = 0; i < request.count; ++i)
    if (!state_.table.exists(strings.next())) return false;
  return true;
}

void Session::wait(const Request& request, Replies& replies) {
  std::vector<std::string_view> missing;
  StringReader strings = request.strings();
  for (uint64_t i = 0; i < request.count; ++i) {
    std::string_view key = strings.next();
    if (!state_.table.exists(key)) missing.push_back(key);
  }
  if (missing.empty()) {
    replies.put_int(kStopWaiting);
  } else {
    state_.waits.wait(id_, missing, false, Clock::now());
  }
}

bool Session::queue_push(const Request& request, Replies& replies) {
  StringReader strings = request.strings();
  std::string_view key = strings.next();
  if (!state_.table.queue_push(key, strings.next())) return refuse("the store is full");
  std::vector<ClientId> woken;
  state_.waits.wake_one(key, woken);
  send_stop(woken, replies);
  return true;
}

bool Session::queue_pop(const Request& request, Replies& replies) {
  std::string_view key = request.strings().next();
  const int64_t length = state_.table.queue_length(key);
  replies.put_int(length);
  if (length > 0) replies.put_string(state_.table.queue_pop(key));
  return true;
}

bool Session::watch(const Request& request, Replies& replies) {
  if (!state_.watches.watch(id_, request.strings().next()))
    return refuse("it watches too many keys");
  replies.put_int(KeyEvent::kRegistered);
  return true;
}

bool Session::list_keys(Replies& replies) {
  replies.put_int(state_.table.size());
  for (const auto& entry : state_.table.values()) {
    replies.put_string(entry.first);
    if (replies.overflowed()) return refuse(kUnread);
  }
  return true;
}

}  // namespace muster
