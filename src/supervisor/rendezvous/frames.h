// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "store/wire.h"  // kControlPreamble, which an agent sends before its first frame

namespace muster {

// The framing of a control connection: a u32 (little-endian) that counts what follows, a byte that
// says which message it is, its body. docs/control-protocol.md describes the whole.

// What a frame may hold, its kind included: before the peer has shown who it is, and after.
inline constexpr size_t kMaxHandshakeFrame = size_t{16} << 10;
inline constexpr size_t kMaxFrame = size_t{1} << 20;

// The view points into the bytes it was decoded from.
struct Frame {
  uint8_t kind = 0;
  std::string_view body;
};

// Finds the frames in a stream of bytes. One per connection; holds only what is not a whole frame
// yet. After kMalformed the connection is of no use.
class FrameReader {
 public:
  enum class Answer { kFrame, kNeedMore, kMalformed };

  explicit FrameReader(size_t max_frame) : max_frame_(max_frame) {}

  // For the frames that next() has not returned yet.
  void set_max_frame(size_t max_frame) { max_frame_ = max_frame; }

  void feed(std::string_view bytes);

  // The frame is valid until the next call of this object.
  Answer next(Frame* frame);

  // Bytes of an unfinished frame.
  size_t held() const { return bytes_.size() - at_; }

  // After kMalformed, for people.
  const std::string& why() const { return why_; }

 private:
  void drop_consumed();

  size_t max_frame_;
  std::string bytes_;
  size_t at_ = 0;  // everything before it has been returned
  std::string why_;
};

// Appends a frame. The body must fit into kMaxFrame.
void append_frame(std::string& out, uint8_t kind, std::string_view body);

// For bodies that are not JSON: little-endian numbers.
void append_u64(std::string& out, uint64_t value);
uint64_t read_u64(const char* bytes);

}  // namespace muster
