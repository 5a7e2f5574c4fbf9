// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "loop/tcp_listener.h"
#include "loop/tcp_stream.h"
#include "supervisor/rendezvous/approach.h"
#include "supervisor/rendezvous/auth.h"
#include "supervisor/rendezvous/messages.h"

namespace muster {

inline Approach::Introduction introduction_of(const std::string& host, std::string token = "") {
  Approach::Introduction introduction{"run-1", std::move(token), {}};
  introduction.facts.id = "id-of-" + host;
  introduction.facts.host = host;
  introduction.facts.workers = 1;
  return introduction;
}

// What a coordinator must never do, done at its end of a control connection: a listener whose every
// word the test decides. It keeps what the agent says on the latest connection.
class ScriptedPeer {
 public:
  explicit ScriptedPeer(Loop& loop, const std::string& address = "127.0.0.1") : loop_(loop) {
    auto listener = TcpListener::listen(
        loop, address, 0,
        {[this](UniqueFd socket, const SocketAddress&) { accepted(std::move(socket)); },
         [](const std::string& trouble) { FAIL(trouble); }});
    REQUIRE(listener);
    listener_ = std::move(*listener);
  }

  int port() const { return listener_->port(); }
  int connections() const { return connections_; }
  bool ended() const { return ended_; }
  const std::vector<AgentMessage>& messages() const { return messages_; }

  template <typename T>
  const T* last() const {
    for (auto it = messages_.rbegin(); it != messages_.rend(); ++it) {
      if (const T* found = std::get_if<T>(&*it)) return found;
    }
    return nullptr;
  }
  template <typename T>
  int count() const {
    int found = 0;
    for (const AgentMessage& message : messages_)
      found += std::holds_alternative<T>(message);
    return found;
  }

  void send(HostMessage message) { stream_->write(encode(std::move(message))); }
  void send_raw(std::string_view bytes) { stream_->write(bytes); }
  void hang_up() { stream_.reset(); }
  void stop_listening() { listener_.reset(); }
  void set_reading(bool on) { stream_->set_reading(on); }
  // At once on each new connection.
  void greet_with(std::string bytes) { greeting_ = std::move(bytes); }
  void hang_up_at_once() { hang_up_at_once_ = true; }

  // Takes every agent, without a token, and echoes its heartbeats.
  void be_a_coordinator(message::Welcome welcome = {}) {
    polite_ = true;
    welcome_ = welcome;
  }
  void set_echo(bool on) { echo_ = on; }
  void set_welcome(message::Welcome welcome) { welcome_ = welcome; }
  void set_clock_ahead(int64_t us) { clock_ahead_us_ = us; }

 private:
  void accepted(UniqueFd socket) {
    ++connections_;
    ended_ = false;
    greeted_ = false;
    bytes_.clear();
    reader_ = std::make_unique<FrameReader>(kMaxFrame);
    if (hang_up_at_once_) return;
    auto stream = TcpStream::adopt(loop_, std::move(socket), {buffer_.get(), kBuffer},
                                   {[this](std::string_view bytes) { received(bytes); },
                                    [this](int) { ended_ = true; }, [] {}});
    REQUIRE(stream);
    stream_ = std::move(*stream);
    stream_->write(greeting_);
  }

  void received(std::string_view bytes) {
    bytes_.append(bytes);
    if (!greeted_) {
      if (bytes_.size() < kControlPreamble.size()) return;
      CHECK(bytes_.starts_with(kControlPreamble));
      bytes_.erase(0, kControlPreamble.size());
      greeted_ = true;
    }
    reader_->feed(std::exchange(bytes_, ""));
    Frame frame;
    while (stream_ && reader_->next(&frame) == FrameReader::Answer::kFrame) {
      Result<AgentMessage> message = decode_agent_message(frame);
      if (!message) {
        FAIL_CHECK(message.error().message);
        return;
      }
      messages_.push_back(*message);
      if (polite_) answer(*message);
    }
  }

  void answer(const AgentMessage& message) {
    if (std::holds_alternative<message::Hello>(message)) {
      send(message::Challenge{kControlVersion, new_nonce(), "", now_us()});
    } else if (std::holds_alternative<message::Join>(message)) {
      send(welcome_);
    } else if (auto* beat = std::get_if<message::Heartbeat>(&message); beat && echo_) {
      send(message::HeartbeatEcho{beat->sent_us, now_us()});
    } else if (std::holds_alternative<message::Goodbye>(message) ||
               std::holds_alternative<message::Leave>(message)) {
      hang_up();
    }
  }

  int64_t now_us() const {
    return clock_ahead_us_ + std::chrono::duration_cast<std::chrono::microseconds>(
                                 std::chrono::system_clock::now().time_since_epoch())
                                 .count();
  }

  static constexpr size_t kBuffer = 65536;
  Loop& loop_;
  Owned<TcpListener> listener_;
  std::unique_ptr<char[]> buffer_ = std::make_unique<char[]>(kBuffer);
  Owned<TcpStream> stream_;
  std::unique_ptr<FrameReader> reader_;
  std::string bytes_;
  std::string greeting_;
  std::vector<AgentMessage> messages_;
  message::Welcome welcome_;
  int connections_ = 0;
  int64_t clock_ahead_us_ = 0;
  bool greeted_ = false;
  bool ended_ = false;
  bool polite_ = false;
  bool echo_ = true;
  bool hang_up_at_once_ = false;
};

}  // namespace muster
