// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/approach.h"

#include <cctype>
#include <cerrno>
#include <cstring>
#include <type_traits>
#include <utility>
#include <variant>

#include "supervisor/rendezvous/auth.h"
#include "supervisor/rendezvous/heart.h"

namespace muster {

namespace {

std::string errno_text(int code) {
  if (code == ETIMEDOUT) return "no answer";
  std::string text = std::strerror(code);
  if (!text.empty()) {
    text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  }
  return text;
}

Approach::Obstacle obstacle_of(int code) {
  if (code == ECONNREFUSED) return Approach::Obstacle::kRefused;
  if (code == ETIMEDOUT) return Approach::Obstacle::kNoAnswer;
  return Approach::Obstacle::kUnreachable;
}

}  // namespace

Approach::Approach(Loop& loop, Target target, Introduction introduction, Milliseconds patience,
                   Callbacks callbacks)
    : loop_(loop),
      target_(std::move(target)),
      introduction_(std::move(introduction)),
      patience_(patience),
      callbacks_(std::move(callbacks)) {
  // From the loop, so that even what fails at once is not told from inside this call.
  timer_ = Timer::start(loop_, Milliseconds(0), [this] { next_address(); });
}

void Approach::next_address() {
  connector_.reset();
  stream_.reset();
  timer_.reset();
  for (; next_ < target_.addresses.size(); ++next_) {
    Result<SocketAddress> to = SocketAddress::parse(target_.addresses[next_], target_.port);
    if (!to) {
      remember(Obstacle::kUnreachable, to.error().message);
      continue;
    }
    connector_ = TcpConnector::connect(
        loop_, *to, patience_, [this](Result<UniqueFd> socket) { connected(std::move(socket)); });
    return;
  }
  tell_failure();
}

void Approach::connected(Result<UniqueFd> socket) {
  connector_.reset();
  if (!socket) {
    return failed(obstacle_of(socket.error().code), errno_text(socket.error().code));
  }
  auto stream =
      ControlStream::adopt(loop_, std::move(*socket),
                           {[this](HostMessage message) { on_message(std::move(message)); },
                            [this](const ControlStream::End& end) { on_end(end); }, nullptr});
  if (!stream) return failed(Obstacle::kUnreachable, stream.error().message);
  stream_ = std::move(*stream);
  challenged_ = false;
  nonce_ = new_nonce();
  stream_->send_preamble();
  hello_us_ = unix_us();
  stream_->send(
      message::Hello{kControlVersion, introduction_.run_id, nonce_, !introduction_.token.empty()});
  // Twice, because a coordinator to which thousands come at once does not answer all at once.
  timer_ = Timer::start(loop_, 2 * patience_, [this] {
    failed(Obstacle::kNoAnswer, "no answer: something accepts connections there and says nothing");
  });
}

void Approach::on_message(HostMessage message) {
  if (auto* challenge = std::get_if<message::Challenge>(&message); challenge && !challenged_) {
    return challenged(*challenge);
  }
  if (auto* welcome = std::get_if<message::Welcome>(&message); welcome && challenged_) {
    timer_.reset();
    stream_->trust();
    auto on_joined = std::move(callbacks_.on_joined);
    return on_joined({std::move(stream_), *welcome, {{target_.addresses[next_]}, target_.port}});
  }
  if (auto* refuse = std::get_if<message::Refuse>(&message)) {
    failed(refuse->final ? Obstacle::kFinal : Obstacle::kTurnedAway, refuse->reason);
  } else {
    failed(Obstacle::kStrange, "wrong protocol: it sent a message out of turn");
  }
}

void Approach::challenged(const message::Challenge& challenge) {
  challenged_ = true;
  const std::string& token = introduction_.token;
  const Exchange exchange{introduction_.run_id, nonce_, challenge.nonce};
  if (challenge.version != kControlVersion) {
    return failed(Obstacle::kStrange, "wrong version: it speaks version " +
                                          std::to_string(challenge.version) +
                                          " of the control protocol, this muster version " +
                                          std::to_string(kControlVersion));
  }
  if (!token.empty() && !is_nonce(challenge.nonce)) {
    return failed(Obstacle::kStrange, "wrong protocol: its challenge is none");
  }
  if (!is_proof(challenge.proof, token, Prover::kHost, exchange)) {
    stream_->send(message::Leave{});  // so that its console says so, too
    return failed(Obstacle::kStrange,
                  "wrong token: it does not know ours (it must be the same on all nodes)");
  }
  stream_->send(message::Join{introduction_.facts, make_proof(token, Prover::kAgent, exchange),
                              clock_offset_us(hello_us_, challenge.time_us, unix_us())});
}

void Approach::on_end(const ControlStream::End& end) {
  if (end.malformed) {
    failed(Obstacle::kStrange,
           "wrong protocol: what answers there is no muster coordinator (" + end.why + ")");
  } else if (challenged_) {
    failed(Obstacle::kHungUp, "it hung up while we joined");
  } else {
    failed(Obstacle::kHungUp,
           "wrong protocol: it hangs up without a word (no muster coordinator?)");
  }
}

// Nothing comes of this address; it may be dropped in here.
void Approach::failed(Obstacle obstacle, std::string why) {
  remember(obstacle, std::move(why));
  ++next_;
  next_address();
}

void Approach::remember(Obstacle obstacle, std::string why) {
  if (tried_ && obstacle < worst_.obstacle) return;
  tried_ = true;
  // A name may have several addresses; one that was written as a literal needs no repeating.
  if (target_.addresses.size() > 1) why += " (" + target_.addresses[next_] + ")";
  worst_ = {obstacle, std::move(why)};
}

void Approach::tell_failure() {
  if (!tried_) worst_ = {Obstacle::kUnreachable, "it has no address"};
  auto on_failed = std::move(callbacks_.on_failed);
  on_failed(worst_);
}

}  // namespace muster
