// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

// Takes a text/event-stream piece by piece and gives its messages.
class EventStreamReader {
 public:
  static constexpr size_t kMaxMessage = size_t{64} << 20;

  struct Message {
    std::string event = "message";
    std::string id;  // the last one that was given, whichever message gave it
    std::string data;
  };

  std::vector<Message> take(std::string_view piece);

  // A message grew beyond kMaxMessage: nothing more comes.
  bool overflowed() const { return overflowed_; }

 private:
  void finish_line(std::vector<Message>& messages);

  std::string line_;
  std::string event_;
  std::string id_;
  std::string data_;
  bool overflowed_ = false;
};

}  // namespace muster
