// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/doorkeeper.h"

#include "supervisor/diagnosis/text_lines.h"
#include "supervisor/rendezvous/auth.h"
#include "supervisor/rendezvous/heart.h"

namespace muster {

namespace {

// Of a run id that somebody sends us, in a line.
constexpr size_t kMaxShownId = 60;

// How often lines about bad connections come in bursts.
constexpr Milliseconds kTroubleWindow(60'000);

std::string shown(const std::string& run_id) {
  return "'" + cut_line(clean_line(run_id), kMaxShownId) + "'";
}

}  // namespace

struct Doorkeeper::Stranger final : ControlPeer::Owner {
  enum class Step { kHello, kJoin, kRefused };

  Stranger(Doorkeeper& the_keeper, std::unique_ptr<ControlPeer> the_peer)
      : keeper(the_keeper), peer(std::move(the_peer)) {
    peer->set_owner(this);
  }

  void on_message(AgentMessage message) override {
    if (step == Step::kRefused) return;  // it may have been under way
    auto* hello = std::get_if<message::Hello>(&message);
    auto* join = std::get_if<message::Join>(&message);
    if (step == Step::kHello && hello) {
      keeper.greet(place, *hello);
    } else if (step == Step::kJoin && join) {
      keeper.check(place, std::move(*join));
    } else if (step == Step::kJoin && std::holds_alternative<message::Leave>(message)) {
      keeper.drop(place, "this job's token (MUSTER_TOKEN) is not the node's");
    } else {
      keeper.drop(place, "it sent " + std::string(message_name(message)) + " in the handshake");
    }
  }

  void on_end(const std::string& why) override {
    const bool late = step == Step::kRefused || !why.empty();
    keeper.drop(place, late ? why : "it left in the handshake");
  }

  Doorkeeper& keeper;
  std::unique_ptr<ControlPeer> peer;
  Place place;
  const Clock::time_point since = Clock::now();
  Step step = Step::kHello;
  std::string agent_nonce;
  std::string host_nonce;
};

Doorkeeper::Doorkeeper(Loop& loop, Settings settings, Callbacks callbacks)
    : loop_(loop),
      settings_(std::move(settings)),
      run_id_(valid_utf8(settings_.run_id)),
      callbacks_(std::move(callbacks)),
      trouble_(loop, callbacks_.on_trouble, kTroubleWindow, "rendezvous") {}

Doorkeeper::~Doorkeeper() = default;

void Doorkeeper::take(UniqueFd socket, std::string_view bytes, const SocketAddress& address,
                      std::span<char> read_buffer) {
  if (!bytes.starts_with(kControlPreamble)) {
    blame(address, "it speaks another protocol");
    return;
  }
  bytes.remove_prefix(kControlPreamble.size());
  auto peer = ControlPeer::adopt(loop_, std::move(socket), read_buffer, address);
  if (!peer) {
    blame(address, peer.error().message);
    return;
  }
  ControlPeer& raw = **peer;
  admit(std::move(*peer));
  raw.take(bytes);
}

Doorkeeper::Place Doorkeeper::admit(std::unique_ptr<ControlPeer> peer) {
  // Slow ones must not keep agents out: these finish in a moment, so the oldest gives way.
  if (strangers_.size() >= settings_.max_strangers)
    drop(strangers_.begin(), "too many connections are in the handshake");
  strangers_.emplace_back(*this, std::move(peer));
  const Place place = std::prev(strangers_.end());
  place->place = place;
  if (!timer_) arm();
  return place;
}

void Doorkeeper::greet(Place stranger, const message::Hello& hello) {
  const bool protected_run = !settings_.token.empty();
  if (hello.version != kControlVersion) {
    refuse(stranger,
           {"the coordinator speaks version " + std::to_string(kControlVersion) +
                " of the control protocol, this node version " + std::to_string(hello.version) +
                ": all nodes of a job must have the same muster",
            false});
  } else if (hello.run_id != run_id_) {
    // Whoever has no token learns nothing of a job that has one.
    refuse(stranger, {"the job at this endpoint has " +
                          (protected_run ? "another run id" : "the run id " + shown(run_id_)) +
                          ", not " + shown(hello.run_id),
                      false});
  } else if (hello.has_token != protected_run) {
    refuse(stranger,
           {protected_run ? "the job has a token (MUSTER_TOKEN), this node was started without one"
                          : "this node was started with a token (MUSTER_TOKEN), the job has none",
            true});
  } else if (protected_run && !is_nonce(hello.nonce)) {
    drop(stranger, "hello: bad nonce");
  } else {
    stranger->step = Stranger::Step::kJoin;
    stranger->agent_nonce = hello.nonce;
    message::Challenge challenge;
    if (protected_run) {
      stranger->host_nonce = new_nonce();
      challenge.nonce = stranger->host_nonce;
      challenge.proof =
          make_proof(settings_.token, Prover::kHost, {run_id_, hello.nonce, stranger->host_nonce});
    }
    challenge.time_us = unix_us();
    stranger->peer->send(std::move(challenge));
  }
}

void Doorkeeper::check(Place stranger, message::Join join) {
  if (!is_proof(join.proof, settings_.token, Prover::kAgent,
                {run_id_, stranger->agent_nonce, stranger->host_nonce})) {
    refuse(stranger, {"this node's token (MUSTER_TOKEN) is not the job's", true});
    return;
  }
  std::unique_ptr<ControlPeer> peer = std::move(stranger->peer);
  strangers_.erase(stranger);
  peer->trust();
  callbacks_.on_agent(std::move(peer), std::move(join));
}

void Doorkeeper::refuse(Place stranger, const message::Refuse& refuse) {
  stranger->step = Stranger::Step::kRefused;
  blame(stranger->peer->address(), "refused: " + refuse.reason);
  stranger->peer->send(refuse);
}

void Doorkeeper::send_off(std::unique_ptr<ControlPeer> peer, const message::Refuse& refuse) {
  const Place place = admit(std::move(peer));
  place->step = Stranger::Step::kRefused;
  place->peer->send(refuse);
}

void Doorkeeper::drop(Place stranger, const std::string& why) {
  if (stranger->step != Stranger::Step::kRefused) blame(stranger->peer->address(), why);
  strangers_.erase(stranger);
}

void Doorkeeper::blame(const SocketAddress& address, const std::string& why) {
  trouble_.say("rendezvous: connection of " + address.to_string() + " closed: " + why);
}

void Doorkeeper::arm() {
  timer_.reset();
  if (strangers_.empty()) return;
  const auto left = settings_.patience - (Clock::now() - strangers_.front().since);
  timer_ = Timer::start(loop_, std::max(Milliseconds(1), std::chrono::ceil<Milliseconds>(left)),
                        [this] { on_time(); });
}

void Doorkeeper::on_time() {
  const Clock::time_point now = Clock::now();
  while (!strangers_.empty() && now - strangers_.front().since >= settings_.patience)
    drop(strangers_.begin(), "it did not finish the handshake in time");
  arm();
}

}  // namespace muster
