// SPDX-License-Identifier: Apache-2.0
#include "store/prefix_store.h"

namespace muster {

std::vector<std::string> PrefixStore::full(Keys keys) const {
  std::vector<std::string> result;
  result.reserve(keys.size());
  for (const std::string& key : keys)
    result.push_back(full(key));
  return result;
}

Result<void> PrefixStore::set(std::string_view key, std::string_view value) {
  return store_->set(full(key), value);
}

Result<std::string> PrefixStore::get(std::string_view key) {
  return store_->get(full(key));
}

Result<int64_t> PrefixStore::add(std::string_view key, int64_t delta) {
  return store_->add(full(key), delta);
}

Result<std::string> PrefixStore::compare_set(std::string_view key, std::string_view expected,
                                             std::string_view desired) {
  return store_->compare_set(full(key), expected, desired);
}

Result<bool> PrefixStore::check(Keys keys) {
  return store_->check(full(keys));
}

Result<void> PrefixStore::wait(Keys keys, Duration timeout) {
  return store_->wait(full(keys), timeout);
}

Result<void> PrefixStore::append(std::string_view key, std::string_view value) {
  return store_->append(full(key), value);
}

Result<std::vector<std::string>> PrefixStore::multi_get(Keys keys) {
  return store_->multi_get(full(keys));
}

Result<void> PrefixStore::multi_set(Items items) {
  std::vector<std::pair<std::string, std::string>> list(items.begin(), items.end());
  for (auto& [key, value] : list)
    key.insert(0, prefix_);
  return store_->multi_set(list);
}

Result<bool> PrefixStore::erase(std::string_view key) {
  return store_->erase(full(key));
}

Result<int64_t> PrefixStore::num_keys() {
  return store_->num_keys();
}

Result<std::vector<std::string>> PrefixStore::list_keys() {
  Result<std::vector<std::string>> all = store_->list_keys();
  if (!all) return all;
  std::vector<std::string> mine;
  for (const std::string& key : *all)
    if (key.starts_with(prefix_)) mine.push_back(key.substr(prefix_.size()));
  return mine;
}

Result<void> PrefixStore::barrier(std::string_view key, int64_t world_size, Duration timeout) {
  const std::string name(key);
  const std::vector<std::string> last = {name + "/last_member"};
  Result<int64_t> members = add(name + "/num_members", 1);
  if (!members) return members.error();
  if (*members == world_size)
    if (Result<void> told = set(last[0], "1"); !told) return told;
  return wait(last, timeout);
}

Result<void> PrefixStore::queue_push(std::string_view key, std::string_view value) {
  return store_->queue_push(full(key), value);
}

Result<std::string> PrefixStore::queue_pop(std::string_view key, bool block) {
  return store_->queue_pop(full(key), block);
}

Result<int64_t> PrefixStore::queue_length(std::string_view key) {
  return store_->queue_length(full(key));
}

Result<std::unique_ptr<Store>> PrefixStore::clone() {
  Result<std::unique_ptr<Store>> copy = store_->clone();
  if (!copy) return copy.error();
  return std::unique_ptr<Store>(
      std::make_unique<PrefixStore>(prefix_.substr(0, prefix_.size() - 1), std::move(*copy)));
}

}  // namespace muster
