// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace muster {

// Lets a map of strings be asked with a view.
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const noexcept {
    return std::hash<std::string_view>{}(text);
  }
};

template <typename Value>
using TextMap = std::unordered_map<std::string, Value, TextHash, std::equal_to<>>;

// The values and queues of the store, with the exact rules of each query. Knows nothing of clients
// and waiting. What a call returns as a view is valid until the next change.
class Table {
 public:
  struct Limits {
    uint64_t bytes = uint64_t{16} << 30;   // keys, values and queue items together
    uint64_t value = uint64_t{256} << 20;  // a value grown by APPEND
  };
  // Charged per entry beside its bytes.
  static constexpr uint64_t kEntryOverhead = 128;

  Table() : Table(Limits()) {}
  explicit Table(Limits limits) : limits_(limits) {}

  // Null if there is no such value.
  const std::string* find(std::string_view key) const {
    auto it = values_.find(key);
    return it == values_.end() ? nullptr : &it->second;
  }

  // A value, or a queue that is not empty.
  bool exists(std::string_view key) const {
    return values_.contains(key) || (!queues_.empty() && queues_.contains(key));
  }

  // Changes that return bool return false if a limit forbids them; nothing has changed then.
  bool set(std::string_view key, std::string_view value);
  bool append(std::string_view key, std::string_view value);

  // The new number. A missing key counts as 0; nothing if the value does not begin with a number or
  // a limit forbids it.
  std::optional<int64_t> add(std::string_view key, int64_t delta);

  struct Compared {
    std::string_view value;  // the reply: what is stored now, or `expected` if nothing is
    bool stored = false;
    bool full = false;  // a limit forbade it
  };
  Compared compare_set(std::string_view key, std::string_view expected, std::string_view desired);

  bool erase(std::string_view key);

  bool queue_push(std::string_view key, std::string_view value);
  int64_t queue_length(std::string_view key) const;
  // Takes the oldest item; only for a queue that is not empty.
  std::string queue_pop(std::string_view key);

  int64_t size() const { return static_cast<int64_t>(values_.size()); }
  const TextMap<std::string>& values() const { return values_; }
  const TextMap<std::deque<std::string>>& queues() const { return queues_; }
  uint64_t bytes() const { return bytes_; }

  void clear();

 private:
  bool charge(uint64_t more);

  const Limits limits_;
  TextMap<std::string> values_;
  TextMap<std::deque<std::string>> queues_;  // never holds an empty queue
  uint64_t bytes_ = 0;
};

// The number that `text` begins with, after white space, as C's strtoll reads it; nothing if there
// is none or it does not fit.
std::optional<int64_t> leading_number(std::string_view text);

}  // namespace muster
