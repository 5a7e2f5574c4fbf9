// SPDX-License-Identifier: Apache-2.0
// Only for messages.cc: the messages whose bodies are no JSON, because they come often or carry
// bytes. Numbers are i64, little-endian. Where a body has a fixed size a later version may append.
#pragma once

#include <array>
#include <type_traits>

#include "supervisor/rendezvous/message_ranges.h"
#include "supervisor/rendezvous/messages.h"
#include "supervisor/rendezvous/sample_codec.h"

namespace muster {

// The two numbers of such a message, or the one.
inline auto numbers_of(message::Heartbeat& m) {
  return std::array{&m.sent_us, &m.clock_offset_us};
}
inline auto numbers_of(message::HeartbeatEcho& m) {
  return std::array{&m.sent_us, &m.time_us};
}
inline auto numbers_of(message::Credit& m) {
  return std::array{&m.id, &m.bytes};
}
inline auto numbers_of(message::Piece& m) {
  return std::array{&m.id};
}
inline auto numbers_of(message::AnswerEnd& m) {
  return std::array{&m.id};
}
inline auto numbers_of(message::AnswerBroken& m) {
  return std::array{&m.id};
}
inline auto numbers_of(message::Cancel& m) {
  return std::array{&m.id};
}

template <typename T>
concept NumberMessage = requires(T message) {
  numbers_of(message);
};
template <typename T>
concept BinaryMessage = NumberMessage<T> || std::is_same_v<T, message::Samples>;

template <NumberMessage T>
std::string body_of(T& message) {
  std::string body;
  for (const int64_t* number : numbers_of(message))
    append_u64(body, static_cast<uint64_t>(*number));
  if constexpr (std::is_same_v<T, message::Piece>) body += message.bytes;
  return body;
}
inline std::string body_of(message::Samples& message) {
  return encode_samples(message.attempt, message.samples);
}

template <NumberMessage T>
const char* read_body(std::string_view body, T& message) {
  for (int64_t* number : numbers_of(message)) {
    if (body.size() < sizeof *number) return "size";
    *number = static_cast<int64_t>(read_u64(body.data()));
    body.remove_prefix(sizeof *number);
  }
  if constexpr (std::is_same_v<T, message::Piece>) message.bytes = body;
  return nullptr;
}
inline const char* read_body(std::string_view body, message::Samples& message) {
  return decode_samples(body, message.attempt, message.samples) ? nullptr : "body";
}

inline const char* find_wrong(const message::Heartbeat& m) {
  return within(m.sent_us, 0, kMaxTimeUs) && within(m.clock_offset_us, -kMaxTimeUs, kMaxTimeUs)
             ? nullptr
             : "time";
}
inline const char* find_wrong(const message::HeartbeatEcho& m) {
  return within(m.sent_us, 0, kMaxTimeUs) && within(m.time_us, 0, kMaxTimeUs) ? nullptr : "time";
}

}  // namespace muster
