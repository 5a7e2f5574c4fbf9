// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "store/table.h"
#include "store/waits.h"
#include "store/wire.h"

namespace muster {

// What clients of PyTorch 1.13 need beside the current protocol: other query numbers, no greeting,
// and a second connection per client on which the server tells of changes to watched keys. The
// arguments and replies of the queries that both know are the same.

// The query that a 1.13 client means by a number.
std::optional<Query> legacy_query(uint8_t number);
// The number by which a 1.13 server means a query; nullopt: it has no such.
std::optional<uint8_t> legacy_number(Query query);

enum class Greeting { kNeedMore, kCurrent, kLegacy, kUnknown };

// Tells from the first bytes of a connection, five at most, who is there. Current clients begin
// with VALIDATE and the magic; a 1.13 client that began with the same bytes would set a key of a
// billion characters.
Greeting recognise(std::string_view first_bytes);
constexpr size_t kGreetingSize = 5;

enum class KeyEvent : uint8_t { kUpdated = 0, kCreated = 1, kDeleted = 2, kRegistered = 3 };

// Who is told of changes to which key.
class Watches {
 public:
  static constexpr size_t kMaxPerClient = 65536;

  // Returns false if the client watches too many keys. Watching a key twice changes nothing.
  bool watch(ClientId client, std::string_view key);
  void forget(ClientId client);
  void clear();

  bool empty() const { return watchers_.empty(); }
  // Null if nobody watches the key.
  const std::vector<ClientId>* watchers(std::string_view key) const;

 private:
  TextMap<std::vector<ClientId>> watchers_;
  std::unordered_map<ClientId, std::vector<std::string>> keys_;
};

// What a watcher is sent: the event, the key, its value before and after.
std::string encode_key_event(KeyEvent event, std::string_view key, std::string_view before,
                             std::string_view after);

}  // namespace muster
