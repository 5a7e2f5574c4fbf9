// SPDX-License-Identifier: Apache-2.0
#include "store/legacy.h"

#include <algorithm>
#include <iterator>

namespace muster {

namespace {

// In the order of their numbers.
constexpr Query kLegacyQueries[] = {
    Query::kSet,  Query::kCompareSet, Query::kGet,      Query::kAdd,       Query::kCheck,
    Query::kWait, Query::kGetNumKeys, Query::kWatchKey, Query::kDeleteKey,
};

}  // namespace

std::optional<Query> legacy_query(uint8_t number) {
  if (number >= std::size(kLegacyQueries)) return std::nullopt;
  return kLegacyQueries[number];
}

std::optional<uint8_t> legacy_number(Query query) {
  const auto* const found = std::ranges::find(kLegacyQueries, query);
  if (found == std::end(kLegacyQueries)) return std::nullopt;
  return static_cast<uint8_t>(found - kLegacyQueries);
}

Greeting recognise(std::string_view first_bytes) {
  if (first_bytes.empty()) return Greeting::kNeedMore;
  const auto first = static_cast<uint8_t>(first_bytes[0]);
  if (first != 0) return legacy_query(first) ? Greeting::kLegacy : Greeting::kUnknown;
  if (first_bytes.size() < kGreetingSize) return Greeting::kNeedMore;
  uint32_t word;
  std::memcpy(&word, first_bytes.data() + 1, sizeof word);
  if (word == kStoreMagic) return Greeting::kCurrent;
  // A SET, and this is the length of its key. Every key of a client begins with a slash, so an
  // empty one is a stranger sending zeros.
  return word == 0 ? Greeting::kUnknown : Greeting::kLegacy;
}

bool Watches::watch(ClientId client, std::string_view key) {
  auto it = watchers_.find(key);
  if (it != watchers_.end() && std::ranges::count(it->second, client) > 0) return true;
  std::vector<std::string>& keys = keys_[client];
  if (keys.size() >= kMaxPerClient) return false;
  keys.emplace_back(key);
  if (it == watchers_.end()) it = watchers_.emplace(key, std::vector<ClientId>()).first;
  it->second.push_back(client);
  return true;
}

void Watches::forget(ClientId client) {
  auto it = keys_.find(client);
  if (it == keys_.end()) return;
  for (const std::string& key : it->second) {
    auto watched = watchers_.find(key);
    std::erase(watched->second, client);
    if (watched->second.empty()) watchers_.erase(watched);
  }
  keys_.erase(it);
}

void Watches::clear() {
  watchers_ = {};
  keys_ = {};
}

const std::vector<ClientId>* Watches::watchers(std::string_view key) const {
  auto it = watchers_.find(key);
  return it == watchers_.end() ? nullptr : &it->second;
}

std::string encode_key_event(KeyEvent event, std::string_view key, std::string_view before,
                             std::string_view after) {
  std::string bytes(1, static_cast<char>(event));
  append_string(bytes, key);
  append_string(bytes, before);
  append_string(bytes, after);
  return bytes;
}

}  // namespace muster
