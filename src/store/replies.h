// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "store/wire.h"

namespace muster {

// Where a session puts its replies. Small ones gather in a buffer that all connections share, so
// that a batch of requests costs one system call; large values go to the connection without a copy.
class Replies {
 public:
  // Replies that gather before they are handed on.
  static constexpr size_t kFlushAt = size_t{64} << 10;

  explicit Replies(std::string& buffer) : buffer_(buffer) {}
  Replies(const Replies&) = delete;
  Replies& operator=(const Replies&) = delete;
  virtual ~Replies() = default;

  template <typename Int>
  void put_int(Int value) {
    append_int(buffer_, value);
  }

  void put_string(std::string_view text) {
    append_int<uint64_t>(buffer_, text.size());
    put_bytes(text);
  }

  void put_bytes(std::string_view bytes) {
    if (buffer_.size() + bytes.size() < kFlushAt) {
      buffer_.append(bytes);
      return;
    }
    flush();
    send(bytes);
  }

  void flush() {
    if (buffer_.empty()) return;
    send(buffer_);
    buffer_.clear();
  }

  // The peer does not keep up: no further request of it is answered for now.
  virtual bool full() const = 0;
  // The peer is beyond all bounds and has to go.
  virtual bool overflowed() const = 0;

 private:
  virtual void send(std::string_view bytes) = 0;

  std::string& buffer_;
};

}  // namespace muster
