// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "loop/result.h"

namespace muster {

// A key-value store as worker programs see it: PyTorch's Store, with errors as values. All calls
// block. Keys and values are any bytes. Implementations may be used from several threads, which
// then take turns.
//
// Error codes: ETIMEDOUT (waited in vain; the store stays usable unless the message says that the
// connection is lost), ENODATA (queue_pop from an empty queue), EPROTO (the server answered
// nonsense), otherwise the errno of the connection. After a connection error every call fails.
class Store {
 public:
  using Duration = std::chrono::milliseconds;
  using Keys = std::span<const std::string>;
  using Items = std::span<const std::pair<std::string, std::string>>;

  virtual ~Store() = default;

  // Returns before the server has stored it. The same holds for append, multi_set and queue_push.
  virtual Result<void> set(std::string_view key, std::string_view value) = 0;

  // Waits until there is a value, at most timeout().
  virtual Result<std::string> get(std::string_view key) = 0;

  // Adds to a counter, which begins at 0 and is stored as decimal text; gives the new value.
  virtual Result<int64_t> add(std::string_view key, int64_t delta) = 0;

  // Stores `desired` if the value is `expected`, or if both there is no value and `expected` is
  // empty. Gives what is stored afterwards; `expected` if there is no value.
  virtual Result<std::string> compare_set(std::string_view key, std::string_view expected,
                                          std::string_view desired) = 0;

  // Whether all keys exist; does not wait.
  virtual Result<bool> check(Keys keys) = 0;

  // Waits until all keys exist. A timeout of 0 only looks.
  virtual Result<void> wait(Keys keys, Duration timeout) = 0;
  Result<void> wait(Keys keys) { return wait(keys, timeout()); }

  virtual Result<void> append(std::string_view key, std::string_view value) = 0;

  // Waits for all keys, at most timeout(); the values in the order of the keys.
  virtual Result<std::vector<std::string>> multi_get(Keys keys) = 0;
  virtual Result<void> multi_set(Items items) = 0;

  // Whether there was such a value.
  virtual Result<bool> erase(std::string_view key) = 0;

  // All values of the store, whatever their prefix.
  virtual Result<int64_t> num_keys() = 0;

  // In no order; under a prefix only the keys there, without it.
  virtual Result<std::vector<std::string>> list_keys() = 0;

  // Holds until `world_size` callers came to the same key. A key serves for one barrier only: after
  // it every further call passes at once.
  virtual Result<void> barrier(std::string_view key, int64_t world_size, Duration timeout) = 0;

  virtual Result<void> queue_push(std::string_view key, std::string_view value) = 0;
  // Takes the oldest item. If `block`, waits for one, at most timeout(); another client may still
  // take it first.
  virtual Result<std::string> queue_pop(std::string_view key, bool block) = 0;
  virtual Result<int64_t> queue_length(std::string_view key) = 0;

  // How long get, multi_get and a blocking queue_pop wait for a key, and any call for the server.
  virtual Duration timeout() const = 0;
  virtual void set_timeout(Duration timeout) = 0;

  // A connection of its own to the same server, with the same prefix and timeout.
  virtual Result<std::unique_ptr<Store>> clone() = 0;
};

}  // namespace muster
