// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/frames.h"

#include <cstring>

#include "loop/check.h"

namespace muster {

namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the protocol is little-endian");

constexpr size_t kLengthBytes = sizeof(uint32_t);
// Capacity that a reader without an unfinished frame may keep.
constexpr size_t kKeptCapacity = 512;

}  // namespace

void FrameReader::drop_consumed() {
  bytes_.erase(0, at_);
  at_ = 0;
  if (bytes_.empty() && bytes_.capacity() > kKeptCapacity) bytes_.shrink_to_fit();
}

void FrameReader::feed(std::string_view bytes) {
  drop_consumed();
  bytes_.append(bytes);
}

FrameReader::Answer FrameReader::next(Frame* frame) {
  if (!why_.empty()) return Answer::kMalformed;
  const std::string_view rest = std::string_view(bytes_).substr(at_);
  uint32_t length;
  if (rest.size() < kLengthBytes) {
    drop_consumed();
    return Answer::kNeedMore;
  }
  std::memcpy(&length, rest.data(), kLengthBytes);
  if (length == 0 || length > max_frame_) {
    why_ = length == 0 ? "an empty frame"
                       : "a frame of " + std::to_string(length) + " bytes, more than " +
                             std::to_string(max_frame_);
    return Answer::kMalformed;
  }
  if (rest.size() < kLengthBytes + length) {
    drop_consumed();
    return Answer::kNeedMore;
  }
  frame->kind = static_cast<uint8_t>(rest[kLengthBytes]);
  frame->body = rest.substr(kLengthBytes + 1, length - 1);
  at_ += kLengthBytes + length;
  return Answer::kFrame;
}

void append_frame(std::string& out, uint8_t kind, std::string_view body) {
  MUST(body.size() < kMaxFrame);
  const auto length = static_cast<uint32_t>(body.size() + 1);
  char head[kLengthBytes + 1];
  std::memcpy(head, &length, kLengthBytes);
  head[kLengthBytes] = static_cast<char>(kind);
  out.append(head, sizeof head);
  out.append(body);
}

void append_u64(std::string& out, uint64_t value) {
  char raw[sizeof value];
  std::memcpy(raw, &value, sizeof value);
  out.append(raw, sizeof raw);
}

uint64_t read_u64(const char* bytes) {
  uint64_t value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

}  // namespace muster
