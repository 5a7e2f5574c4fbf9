// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "loop/loop.h"
#include "loop/socket_address.h"
#include "loop/tcp_stream.h"
#include "supervisor/rendezvous/messages.h"

namespace muster {

// The coordinator's end of one control connection: bytes in, messages out. Owned by the
// Doorkeeper during the handshake and by the CoordinatorHost after it. Dropping it closes the
// connection; allowed in its owner's functions.
class ControlPeer {
 public:
  // Whoever has it at the time. Called from the loop and by take(), never by send().
  class Owner {
   public:
    virtual void on_message(AgentMessage message) = 0;
    // Once, the last call. `why` is empty if the peer closed between two messages.
    virtual void on_end(const std::string& why) = 0;

   protected:
    ~Owner() = default;
  };

  // `read_buffer` is shared by all peers and outlives them.
  static Result<std::unique_ptr<ControlPeer>> adopt(Loop& loop, UniqueFd socket,
                                                    std::span<char> read_buffer,
                                                    const SocketAddress& address);

  // Messages that arrived together with the last one go to the new owner.
  void set_owner(Owner* owner) { owner_ = owner; }

  // Bytes that somebody else has read from the socket, before anything else.
  void take(std::string_view bytes) { received(bytes); }

  // Large frames are allowed from now on.
  void trust() { reader_.set_max_frame(kMaxFrame); }

  void send(HostMessage message) { send_encoded(encode(std::move(message))); }
  void send_encoded(std::string_view frame) { stream_->write(frame); }
  size_t unsent() const { return stream_->unsent(); }

  const SocketAddress& address() const { return address_; }  // where it comes from
  const SocketAddress& ours() const { return ours_; }        // what it reached

 private:
  ControlPeer(const SocketAddress& address, const SocketAddress& ours)
      : address_(address), ours_(ours) {}
  void received(std::string_view bytes);

  const SocketAddress address_;
  const SocketAddress ours_;
  Owner* owner_ = nullptr;
  FrameReader reader_{kMaxHandshakeFrame};
  Owned<TcpStream> stream_;
  bool ended_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>();  // its end is seen from inside a call
};

}  // namespace muster
