// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace muster {

// Takes an event stream of another muster apart again. It writes "\n" alone between lines and one
// data line a message. Pure.
class SseSplitter {
 public:
  // A longer message is none of ours.
  static constexpr size_t kMaxMessage = size_t{8} << 20;

  struct Message {
    std::string event;
    std::string id;
    std::string data;
  };

  void add(std::string_view bytes);
  // The next whole message; comments are passed over.
  std::optional<Message> next();
  bool too_long() const { return text_.size() - begin_ > kMaxMessage; }

 private:
  std::string text_;
  size_t begin_ = 0;  // of what was not given out yet
};

}  // namespace muster
