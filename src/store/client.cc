// SPDX-License-Identifier: Apache-2.0
#include "store/client.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <thread>

#include "store/legacy.h"

namespace muster {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr double kDelayGrowth = 1.5;
constexpr double kDelaySpread = 0.5;
// The last retries come closer together than the back-off says, so that none of the time is lost.
constexpr milliseconds kLeastDelay{20};

// A reply longer than this is nonsense.
constexpr uint64_t kMaxReplyString = uint64_t{1} << 30;
// Keys that a message lists.
constexpr size_t kKeysInMessage = 8;

std::string start(Query query) {
  return std::string(1, static_cast<char>(query));
}

// Every key of a client begins with a slash on the wire.
void append_key(std::string& out, std::string_view key) {
  append_int<uint64_t>(out, key.size() + 1);
  out += '/';
  out.append(key);
}

std::string key_request(Query query, std::string_view key) {
  std::string request = start(query);
  append_key(request, key);
  return request;
}

std::string keys_request(Query query, Store::Keys keys) {
  std::string request = start(query);
  append_int<uint64_t>(request, keys.size());
  for (const std::string& key : keys)
    append_key(request, key);
  return request;
}

std::string value_request(Query query, std::string_view key, std::string_view value) {
  std::string request = key_request(query, key);
  append_string(request, value);
  return request;
}

Result<std::string> read_string(Connection& connection, Deadline deadline) {
  Result<uint64_t> size = connection.receive_int<uint64_t>(deadline);
  if (!size) return size.error();
  if (*size > kMaxReplyString)
    return Error{EPROTO, "the server answered with " + std::to_string(*size) + " bytes"};
  return connection.receive(*size, deadline);
}

Result<int64_t> read_i64(Connection& connection, Deadline deadline) {
  return connection.receive_int<int64_t>(deadline);
}

std::string list(Store::Keys keys) {
  std::string text;
  for (size_t i = 0; i < std::min(keys.size(), kKeysInMessage); ++i)
    text += (i > 0 ? ", " : "") + keys[i];
  if (keys.size() > kKeysInMessage)
    text += " and " + std::to_string(keys.size() - kKeysInMessage) + " more";
  return text;
}

// What makes another attempt sensible: the server may not be there yet.
bool may_heal(int code) {
  return code != EACCES && code != EPERM && code != EINVAL && code != EAFNOSUPPORT;
}

}  // namespace

Result<std::unique_ptr<StoreClient>> StoreClient::connect(const Options& options) {
  if (options.port <= 0 || options.port > 65535)
    return Error{EINVAL, "store: port " + std::to_string(options.port)};
  const Deadline deadline = deadline_in(options.timeout);
  std::minstd_rand random(static_cast<unsigned>(getpid()) ^
                          static_cast<unsigned>(Clock::now().time_since_epoch().count()));
  std::uniform_real_distribution<double> spread(1 - kDelaySpread, 1 + kDelaySpread);
  const auto longest = static_cast<double>(options.longest_pause.count());
  for (auto delay = static_cast<double>(options.first_pause.count());;
       delay = std::min(delay * kDelayGrowth, longest)) {
    Result<Greeted> greeted = greet(options.host, options.port, deadline);
    if (greeted) {
      std::unique_ptr<StoreClient> client(new StoreClient(options, std::move(*greeted)));
      if (options.count_as_member)
        if (Result<void> counted = client->count_as_member(); !counted) return counted.error();
      return client;
    }
    const Error& error = greeted.error();
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
    if (options.once || !may_heal(error.code)) return Error{error.code, "store: " + error.message};
    if (left <= kLeastDelay)
      return Error{ETIMEDOUT, "store: no connection to " + options.host + ":" +
                                  std::to_string(options.port) + " within " +
                                  std::to_string(options.timeout.count()) + "ms: " + error.message};
    const milliseconds pause(static_cast<int64_t>(delay * spread(random)));
    std::this_thread::sleep_for(std::min(pause, std::max(left / 2, kLeastDelay)));
  }
}

Result<void> StoreClient::count_as_member() {
  std::string request = start(Query::kAdd);
  append_string(request, "init/");  // the one key without a slash before it
  append_int<int64_t>(request, 1);
  Result<int64_t> members = ask<int64_t>(request, read_i64);
  return members ? Result<void>() : members.error();
}

Deadline StoreClient::reply_deadline() const {
  return deadline_in(std::max(options_.timeout, options_.least_reply_time));
}

// From here on the replies cannot be told apart any more.
Error StoreClient::lost(Error error) {
  error.message = "store: " + error.message + "; the connection is lost";
  lost_ = error;
  return error;
}

template <typename Reply>
Result<Reply> StoreClient::ask(const std::string& request,
                               const std::function<Result<Reply>(Connection&, Deadline)>& read) {
  if (Result<void> told = tell(request); !told) return told.error();
  Result<Reply> reply = read(connection_, reply_deadline());
  if (!reply) return lost(reply.error());
  return reply;
}

Result<void> StoreClient::tell(const std::string& request) {
  if (lost_) return *lost_;
  if (dialect_ == Dialect::kLegacy) return tell_legacy(request);
  Result<void> sent = connection_.send(request, reply_deadline());
  if (!sent) return lost(sent.error());
  return {};
}

// The same bytes behind another number.
Result<void> StoreClient::tell_legacy(std::string request) {
  const auto number = legacy_number(static_cast<Query>(request[0]));
  if (!number)
    return Error{EOPNOTSUPP, "store: the server, which is PyTorch 1.13's, has no such query"};
  request[0] = static_cast<char>(*number);
  Result<void> sent = connection_.send(request, reply_deadline());
  if (!sent) return lost(sent.error());
  return {};
}

Result<void> StoreClient::await_stop(const std::string& request, Duration timeout,
                                     const std::string& what) {
  if (Result<void> told = tell(request); !told) return told;
  Result<uint8_t> answer = connection_.receive_int<uint8_t>(deadline_in(timeout));
  if (!answer && answer.error().code == ETIMEDOUT) return cancel_wait(what, timeout);
  if (!answer) return lost(answer.error());
  if (*answer != kStopWaiting)
    return lost(Error{EPROTO, "" + what + ": answer " + std::to_string(*answer)});
  return {};
}

// The answer may have crossed the cancellation on the wire: then it comes first. It is too late all
// the same.
Result<void> StoreClient::cancel_wait(const std::string& what, Duration timeout) {
  const Deadline deadline = deadline_in(options_.least_reply_time);
  const Error timed_out{
      ETIMEDOUT, "store: " + what + ": timed out after " + std::to_string(timeout.count()) + "ms"};
  if (dialect_ == Dialect::kLegacy) {
    // Such a server knows no cancelling, but forgets who leaves.
    connection_ = Connection(UniqueFd());
    Result<Greeted> again = greet(options_.host, options_.port, deadline);
    if (!again) return lost(again.error());
    connection_ = std::move(again->connection);
    dialect_ = again->dialect;
    return timed_out;
  }
  if (Result<void> told = tell(start(Query::kCancelWait)); !told) return told;
  Result<uint8_t> answer = connection_.receive_int<uint8_t>(deadline);
  if (answer && *answer == kStopWaiting) answer = connection_.receive_int<uint8_t>(deadline);
  if (!answer) return lost(answer.error());
  if (*answer != kWaitCanceled)
    return lost(Error{EPROTO, "cancel: answer " + std::to_string(*answer)});
  return timed_out;
}

Result<bool> StoreClient::check_keys(Keys keys) {
  Result<uint8_t> answer = ask<uint8_t>(keys_request(Query::kCheck, keys),
                                        [](Connection& connection, Deadline deadline) {
                                          return connection.receive_int<uint8_t>(deadline);
                                        });
  if (!answer) return answer.error();
  if (*answer != kReady && *answer != kNotReady)
    return lost(Error{EPROTO, "check: answer " + std::to_string(*answer)});
  return *answer == kReady;
}

Result<void> StoreClient::wait_for_keys(Keys keys, Duration timeout) {
  const std::string what = "wait for " + list(keys);
  if (timeout.count() > 0) return await_stop(keys_request(Query::kWait, keys), timeout, what);
  Result<bool> there = check_keys(keys);
  if (!there) return there.error();
  if (!*there) return Error{ETIMEDOUT, "store: " + what + ": not there"};
  return {};
}

Result<void> StoreClient::set(std::string_view key, std::string_view value) {
  std::lock_guard lock(mutex_);
  return tell(value_request(Query::kSet, key, value));
}

Result<std::string> StoreClient::get(std::string_view key) {
  std::lock_guard lock(mutex_);
  const std::string keys[] = {std::string(key)};
  if (Result<void> there = wait_for_keys(keys, options_.timeout); !there) return there.error();
  return ask<std::string>(key_request(Query::kGet, key), read_string);
}

Result<int64_t> StoreClient::add(std::string_view key, int64_t delta) {
  std::lock_guard lock(mutex_);
  std::string request = key_request(Query::kAdd, key);
  append_int(request, delta);
  return ask<int64_t>(request, read_i64);
}

Result<std::string> StoreClient::compare_set(std::string_view key, std::string_view expected,
                                             std::string_view desired) {
  std::lock_guard lock(mutex_);
  std::string request = value_request(Query::kCompareSet, key, expected);
  append_string(request, desired);
  return ask<std::string>(request, read_string);
}

Result<bool> StoreClient::check(Keys keys) {
  std::lock_guard lock(mutex_);
  return check_keys(keys);
}

Result<void> StoreClient::wait(Keys keys, Duration timeout) {
  std::lock_guard lock(mutex_);
  return wait_for_keys(keys, timeout);
}

Result<void> StoreClient::append(std::string_view key, std::string_view value) {
  std::lock_guard lock(mutex_);
  return tell(value_request(Query::kAppend, key, value));
}

Result<std::vector<std::string>> StoreClient::multi_get(Keys keys) {
  std::lock_guard lock(mutex_);
  if (Result<void> there = wait_for_keys(keys, options_.timeout); !there) return there.error();
  using Values = std::vector<std::string>;
  if (dialect_ == Dialect::kLegacy) {
    Values values;
    for (const std::string& key : keys) {
      Result<std::string> value = ask<std::string>(key_request(Query::kGet, key), read_string);
      if (!value) return value.error();
      values.push_back(std::move(*value));
    }
    return values;
  }
  return ask<Values>(keys_request(Query::kMultiGet, keys),
                     [&](Connection& connection, Deadline deadline) -> Result<Values> {
                       Values values;
                       for (size_t i = 0; i < keys.size(); ++i) {
                         Result<std::string> value = read_string(connection, deadline);
                         if (!value) return value.error();
                         values.push_back(std::move(*value));
                       }
                       return values;
                     });
}

Result<void> StoreClient::multi_set(Items items) {
  std::lock_guard lock(mutex_);
  if (dialect_ == Dialect::kLegacy) {
    for (const auto& [key, value] : items)
      if (Result<void> told = tell(value_request(Query::kSet, key, value)); !told) return told;
    return {};
  }
  std::string request = start(Query::kMultiSet);
  append_int<uint64_t>(request, items.size());
  for (const auto& [key, value] : items) {
    append_key(request, key);
    append_string(request, value);
  }
  return tell(request);
}

Result<bool> StoreClient::erase(std::string_view key) {
  std::lock_guard lock(mutex_);
  Result<int64_t> erased = ask<int64_t>(key_request(Query::kDeleteKey, key), read_i64);
  if (!erased) return erased.error();
  return *erased == 1;
}

Result<int64_t> StoreClient::num_keys() {
  std::lock_guard lock(mutex_);
  return ask<int64_t>(start(Query::kGetNumKeys), read_i64);
}

Result<std::vector<std::string>> StoreClient::list_keys() {
  std::lock_guard lock(mutex_);
  using List = std::vector<std::string>;
  return ask<List>(start(Query::kListKeys),
                   [](Connection& connection, Deadline deadline) -> Result<List> {
                     Result<int64_t> count = read_i64(connection, deadline);
                     if (!count) return count.error();
                     List keys;
                     for (int64_t i = 0; i < *count; ++i) {
                       Result<std::string> key = read_string(connection, deadline);
                       if (!key) return key.error();
                       if (key->starts_with('/')) keys.push_back(key->substr(1));
                     }
                     return keys;
                   });
}

Result<void> StoreClient::barrier(std::string_view key, int64_t world_size, Duration timeout) {
  std::lock_guard lock(mutex_);
  std::string request = key_request(Query::kBarrier, key);
  append_int(request, world_size);
  return await_stop(request, timeout, "barrier " + std::string(key));
}

Result<void> StoreClient::queue_push(std::string_view key, std::string_view value) {
  std::lock_guard lock(mutex_);
  return tell(value_request(Query::kQueuePush, key, value));
}

Result<std::string> StoreClient::queue_pop(std::string_view key, bool block) {
  std::lock_guard lock(mutex_);
  const std::string keys[] = {std::string(key)};
  if (block)
    if (Result<void> there = wait_for_keys(keys, options_.timeout); !there) return there.error();
  bool empty = false;
  Result<std::string> item = ask<std::string>(
      key_request(Query::kQueuePop, key),
      [&](Connection& connection, Deadline deadline) -> Result<std::string> {
        Result<int64_t> length = read_i64(connection, deadline);
        if (!length) return length.error();
        empty = *length <= 0;
        return empty ? Result<std::string>(std::string()) : read_string(connection, deadline);
      });
  if (item && empty) return Error{ENODATA, "store: queue " + keys[0] + " is empty"};
  return item;
}

Result<int64_t> StoreClient::queue_length(std::string_view key) {
  std::lock_guard lock(mutex_);
  return ask<int64_t>(key_request(Query::kQueueLength, key), read_i64);
}

Store::Duration StoreClient::timeout() const {
  std::lock_guard lock(mutex_);
  return options_.timeout;
}

void StoreClient::set_timeout(Duration timeout) {
  std::lock_guard lock(mutex_);
  options_.timeout = timeout;
}

Result<std::unique_ptr<Store>> StoreClient::clone() {
  Options options;
  {
    std::lock_guard lock(mutex_);
    options = options_;
  }
  options.count_as_member = false;
  Result<std::unique_ptr<StoreClient>> copy = connect(options);
  if (!copy) return copy.error();
  return std::unique_ptr<Store>(std::move(*copy));
}

SocketAddress StoreClient::local_address() const {
  return connection_.local_address();
}

}  // namespace muster
