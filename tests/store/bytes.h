// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>

namespace muster {

// Writes requests and expected replies by hand, so that the tests do not trust the code they test.
struct Bytes {
  std::string text;

  Bytes& u8(uint8_t value) { return raw(&value, sizeof value); }
  Bytes& u32(uint32_t value) { return raw(&value, sizeof value); }
  Bytes& u64(uint64_t value) { return raw(&value, sizeof value); }
  Bytes& i64(int64_t value) { return raw(&value, sizeof value); }
  Bytes& str(std::string_view value) {
    u64(value.size());
    text.append(value);
    return *this;
  }
  Bytes& add(const Bytes& other) {
    text += other.text;
    return *this;
  }
  operator std::string() const { return text; }

 private:
  Bytes& raw(const void* data, size_t size) {
    text.append(static_cast<const char*>(data), size);
    return *this;
  }
};

namespace request {

inline Bytes validate() {
  return Bytes().u8(0).u32(0x3C85F7CE);
}
inline Bytes ping(uint32_t nonce) {
  return Bytes().u8(13).u32(nonce);
}
inline Bytes set(std::string_view key, std::string_view value) {
  return Bytes().u8(1).str(key).str(value);
}
inline Bytes compare_set(std::string_view key, std::string_view expected,
                         std::string_view desired) {
  return Bytes().u8(2).str(key).str(expected).str(desired);
}
inline Bytes get(std::string_view key) {
  return Bytes().u8(3).str(key);
}
inline Bytes add(std::string_view key, int64_t delta) {
  return Bytes().u8(4).str(key).i64(delta);
}
// CHECK 5, WAIT 6, MULTI_GET 10
inline Bytes keys(uint8_t query, std::initializer_list<std::string_view> list) {
  Bytes bytes = Bytes().u8(query).u64(list.size());
  for (std::string_view key : list)
    bytes.str(key);
  return bytes;
}
inline Bytes check(std::initializer_list<std::string_view> list) {
  return keys(5, list);
}
inline Bytes wait(std::initializer_list<std::string_view> list) {
  return keys(6, list);
}
inline Bytes num_keys() {
  return Bytes().u8(7);
}
inline Bytes erase(std::string_view key) {
  return Bytes().u8(8).str(key);
}
inline Bytes append(std::string_view key, std::string_view value) {
  return Bytes().u8(9).str(key).str(value);
}
inline Bytes multi_get(std::initializer_list<std::string_view> list) {
  return keys(10, list);
}
inline Bytes cancel_wait() {
  return Bytes().u8(12);
}
inline Bytes queue_push(std::string_view key, std::string_view value) {
  return Bytes().u8(14).str(key).str(value);
}
inline Bytes queue_pop(std::string_view key) {
  return Bytes().u8(15).str(key);
}
inline Bytes queue_length(std::string_view key) {
  return Bytes().u8(16).str(key);
}
inline Bytes list_keys() {
  return Bytes().u8(17);
}
inline Bytes barrier(std::string_view key, int64_t world_size) {
  return Bytes().u8(18).str(key).i64(world_size);
}

}  // namespace request
}  // namespace muster
