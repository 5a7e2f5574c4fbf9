// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/control_peer.h"

#include <cerrno>
#include <cstring>

namespace muster {

Result<std::unique_ptr<ControlPeer>> ControlPeer::adopt(Loop& loop, UniqueFd socket,
                                                        std::span<char> read_buffer,
                                                        const SocketAddress& address) {
  std::unique_ptr<ControlPeer> peer(new ControlPeer(address, SocketAddress::local(socket.get())));
  ControlPeer* raw = peer.get();
  auto stream = TcpStream::adopt(loop, std::move(socket), read_buffer,
                                 {[raw](std::string_view bytes) { raw->received(bytes); },
                                  [raw](int code) {
                                    if (raw->ended_) return;
                                    raw->ended_ = true;
                                    const bool cut = code == 0 && raw->reader_.held() > 0;
                                    raw->owner_->on_end(code != 0 ? std::strerror(code)
                                                        : cut ? "it left in the middle of a message"
                                                              : "");
                                  },
                                  [] {}});
  if (!stream) return stream.error();
  peer->stream_ = std::move(*stream);
  return peer;
}

void ControlPeer::received(std::string_view bytes) {
  if (ended_) return;  // it lives on only because its owner waits for something else
  reader_.feed(bytes);
  const std::weak_ptr<bool> alive = alive_;
  Frame frame;
  FrameReader::Answer answer;
  while ((answer = reader_.next(&frame)) == FrameReader::Answer::kFrame) {
    Result<AgentMessage> message = decode_agent_message(frame);
    if (!message) {
      ended_ = true;
      owner_->on_end(message.error().message);
      return;
    }
    owner_->on_message(std::move(*message));
    if (alive.expired()) return;
  }
  if (answer != FrameReader::Answer::kMalformed) return;
  ended_ = true;
  owner_->on_end(reader_.why());
}

}  // namespace muster
