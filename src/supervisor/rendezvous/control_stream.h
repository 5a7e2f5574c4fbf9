// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "loop/loop.h"
#include "loop/result.h"
#include "loop/tcp_stream.h"
#include "loop/unique_fd.h"
#include "supervisor/rendezvous/frames.h"
#include "supervisor/rendezvous/messages.h"

namespace muster {

// The agent's end of a control connection: messages out, messages in. Owned by whoever talks at the
// time: Approach until the coordinator has taken the node, then RemoteLink. Dropping it closes the
// connection; allowed in its callbacks.
class ControlStream {
 public:
  struct End {
    bool malformed = false;  // what came is no message of a coordinator
    int code = 0;            // errno; 0: it closed the connection
    std::string why;
  };
  struct Callbacks {
    std::function<void(HostMessage)> on_message;
    std::function<void(const End&)> on_end;  // once, the last
    std::function<void()> on_drained;        // everything unsent has gone
  };

  // Frames are small until trust().
  static Result<std::unique_ptr<ControlStream>> adopt(Loop& loop, UniqueFd socket,
                                                      Callbacks callbacks);

  // For the next owner. Messages that came together with the last one go to the new callbacks.
  void set_callbacks(Callbacks callbacks) { callbacks_ = std::move(callbacks); }
  void trust() { reader_.set_max_frame(kMaxFrame); }

  void send_preamble() { stream_->write(kControlPreamble); }
  void send(AgentMessage message) { stream_->write(encode(std::move(message))); }
  size_t unsent() const { return stream_->unsent(); }

 private:
  explicit ControlStream(Callbacks callbacks);
  void received(std::string_view bytes);
  void strange(const std::string& why);
  void ended(const End& end);

  Callbacks callbacks_;
  FrameReader reader_{kMaxHandshakeFrame};
  bool expects_first_ = true;  // no message has come yet
  std::string opening_;        // the first bytes that came
  std::unique_ptr<char[]> read_buffer_;
  Owned<TcpStream> stream_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>();  // its end is seen from inside a call
};

}  // namespace muster
