// SPDX-License-Identifier: Apache-2.0
#include "store/table.h"

#include <charconv>

#include "loop/check.h"

namespace muster {

std::optional<int64_t> leading_number(std::string_view text) {
  while (!text.empty() && (text[0] == ' ' || (text[0] >= '\t' && text[0] <= '\r')))
    text.remove_prefix(1);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  int64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

bool Table::charge(uint64_t more) {
  if (more > limits_.bytes || bytes_ > limits_.bytes - more) return false;
  bytes_ += more;
  return true;
}

bool Table::set(std::string_view key, std::string_view value) {
  auto it = values_.find(key);
  if (it == values_.end()) {
    if (!charge(kEntryOverhead + key.size() + value.size())) return false;
    values_.emplace(key, value);
    return true;
  }
  const uint64_t before = it->second.size();
  if (value.size() > before && !charge(value.size() - before)) return false;
  if (value.size() < before) bytes_ -= before - value.size();
  it->second.assign(value);
  // A large value that became a small one gives its memory back.
  if (it->second.capacity() > 4096 && it->second.capacity() / 4 > value.size())
    it->second.shrink_to_fit();
  return true;
}

bool Table::append(std::string_view key, std::string_view value) {
  auto it = values_.find(key);
  if (it == values_.end()) return set(key, value);
  if (it->second.size() + value.size() > limits_.value || !charge(value.size())) return false;
  it->second.append(value);
  return true;
}

std::optional<int64_t> Table::add(std::string_view key, int64_t delta) {
  auto it = values_.find(key);
  int64_t sum = delta;
  if (it != values_.end()) {
    std::optional<int64_t> before = leading_number(it->second);
    if (!before) return std::nullopt;
    // Wraps as PyTorch's does, without the undefined overflow of signed numbers.
    sum = static_cast<int64_t>(static_cast<uint64_t>(*before) + static_cast<uint64_t>(delta));
  }
  char text[24];
  auto [end, error] = std::to_chars(text, text + sizeof text, sum);
  MUST(error == std::errc());
  const std::string_view value(text, static_cast<size_t>(end - text));
  if (it == values_.end()) return set(key, value) ? std::optional(sum) : std::nullopt;
  if (value.size() > it->second.size() && !charge(value.size() - it->second.size()))
    return std::nullopt;
  if (value.size() < it->second.size()) bytes_ -= it->second.size() - value.size();
  it->second.assign(value);
  return sum;
}

Table::Compared Table::compare_set(std::string_view key, std::string_view expected,
                                   std::string_view desired) {
  const std::string* current = find(key);
  // The caller cannot tell a missing key from one that already holds what it expected: PyTorch's
  // rule, and its clients live with it.
  if (current == nullptr && !expected.empty()) return {expected, false, false};
  if (current != nullptr && *current != expected) return {*current, false, false};
  if (!set(key, desired)) return {desired, false, true};
  return {desired, true, false};
}

bool Table::erase(std::string_view key) {
  auto it = values_.find(key);
  if (it == values_.end()) return false;
  bytes_ -= kEntryOverhead + it->first.size() + it->second.size();
  values_.erase(it);
  return true;
}

bool Table::queue_push(std::string_view key, std::string_view value) {
  if (!charge(kEntryOverhead + key.size() + value.size())) return false;
  auto it = queues_.find(key);
  if (it == queues_.end()) it = queues_.emplace(key, std::deque<std::string>()).first;
  it->second.emplace_back(value);
  return true;
}

int64_t Table::queue_length(std::string_view key) const {
  auto it = queues_.find(key);
  return it == queues_.end() ? 0 : static_cast<int64_t>(it->second.size());
}

std::string Table::queue_pop(std::string_view key) {
  auto it = queues_.find(key);
  MUST(it != queues_.end());
  std::string value = std::move(it->second.front());
  it->second.pop_front();
  bytes_ -= kEntryOverhead + key.size() + value.size();
  if (it->second.empty()) queues_.erase(it);
  return value;
}

void Table::clear() {
  // Fresh maps, not clear(): the buckets of a large job go too.
  values_ = {};
  queues_ = {};
  bytes_ = 0;
}

}  // namespace muster
