// SPDX-License-Identifier: Apache-2.0
//
// Every request has the same form, which is what the table below says of each query:
//
//   u8 query   [u64 count]   strings   [i64 or u32 number]
//
// Where there is a count it is followed by that many groups of strings; the rest have one group.
// A group is made of keys and values, which differ only in their limit.
#include "store/wire.h"

#include <array>
#include <optional>

#include "store/legacy.h"

namespace muster {

namespace {

struct Shape {
  std::string_view group;  // 'k' a key, 'v' a value
  bool counted;
  uint8_t number;  // bytes of the trailing number
};

constexpr std::array<Shape, 20> kShapes{{
    {"", false, 4},     // VALIDATE
    {"kv", false, 0},   // SET
    {"kvv", false, 0},  // COMPARE_SET
    {"k", false, 0},    // GET
    {"k", false, 8},    // ADD
    {"k", true, 0},     // CHECK
    {"k", true, 0},     // WAIT
    {"", false, 0},     // GETNUMKEYS
    {"k", false, 0},    // DELETE_KEY
    {"kv", false, 0},   // APPEND
    {"k", true, 0},     // MULTI_GET
    {"kv", true, 0},    // MULTI_SET
    {"", false, 0},     // CANCEL_WAIT
    {"", false, 4},     // PING
    {"kv", false, 0},   // QUEUE_PUSH
    {"k", false, 0},    // QUEUE_POP
    {"k", false, 0},    // QUEUE_LEN
    {"", false, 0},     // LIST_KEYS
    {"k", false, 8},    // BARRIER
    {"k", false, 0},    // WATCH_KEY
}};

constexpr uint8_t kCurrentQueries = 19;

std::optional<Query> dialect_query(Dialect dialect, uint8_t number) {
  if (dialect == Dialect::kLegacy) return legacy_query(number);
  return number < kCurrentQueries ? std::optional(static_cast<Query>(number)) : std::nullopt;
}

const Shape& shape_of(Query query) {
  return kShapes[static_cast<size_t>(query)];
}

uint64_t read_u64(std::string_view bytes, size_t at) {
  uint64_t value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::string over(const char* what, uint64_t size, uint64_t limit) {
  return std::string(what) + " of " + std::to_string(size) + " (at most " + std::to_string(limit) +
         ")";
}

}  // namespace

Decoded RequestDecoder::malformed(std::string why) {
  why_ = std::move(why);
  return Decoded::kMalformed;
}

bool RequestDecoder::begin(uint8_t number) {
  std::optional<Query> query = dialect_query(dialect_, number);
  if (!query) return false;
  query_ = *query;
  const Shape& shape = shape_of(query_);
  counted_ = shape.counted;
  count_ = shape.group.size();
  strings_left_ = counted_ ? 0 : count_;
  string_index_ = 0;
  at_ = strings_at_ = 1;
  return true;
}

Decoded RequestDecoder::decode(std::string_view bytes, Request* request) {
  if (bytes.size() < needed_) return Decoded::kNeedMore;
  if (at_ == 0 && !begin(static_cast<uint8_t>(bytes[0])))
    return malformed("unknown query " + std::to_string(static_cast<uint8_t>(bytes[0])));
  const std::string_view group = shape_of(query_).group;
  if (counted_) {
    needed_ = at_ + 8;
    if (bytes.size() < needed_) return Decoded::kNeedMore;
    count_ = read_u64(bytes, at_);
    if (count_ > limits_.keys) return malformed(over("a number of keys", count_, limits_.keys));
    strings_left_ = count_ * group.size();
    at_ = strings_at_ = needed_;
    counted_ = false;
  }
  while (strings_left_ > 0) {
    needed_ = at_ + 8;
    if (bytes.size() < needed_) return Decoded::kNeedMore;
    const uint64_t length = read_u64(bytes, at_);
    const bool key = group[string_index_] == 'k';
    const uint64_t limit = key ? limits_.key : limits_.value;
    if (length > limit)
      return malformed(over(key ? "a key length" : "a value length", length, limit));
    if (needed_ + length > limits_.request)
      return malformed(over("a request length", needed_ + length, limits_.request));
    needed_ += length;
    if (bytes.size() < needed_) return Decoded::kNeedMore;
    at_ = needed_;
    string_index_ = string_index_ + 1 == group.size() ? 0 : string_index_ + 1;
    --strings_left_;
  }
  return finish(bytes, request);
}

Decoded RequestDecoder::finish(std::string_view bytes, Request* request) {
  const uint8_t number_size = shape_of(query_).number;
  needed_ = at_ + number_size;
  if (bytes.size() < needed_) return Decoded::kNeedMore;
  request->query = query_;
  request->count = count_;
  request->encoded = bytes.substr(strings_at_, at_ - strings_at_);
  request->size = needed_;
  if (number_size == 8) {
    request->number = static_cast<int64_t>(read_u64(bytes, at_));
  } else if (number_size == 4) {
    uint32_t value;
    std::memcpy(&value, bytes.data() + at_, sizeof value);
    request->number = value;
  }
  at_ = 0;
  needed_ = 1;
  return Decoded::kRequest;
}

}  // namespace muster
