// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>

#include "loop/loop.h"
#include "loop/timer.h"
#include "store/trouble.h"
#include "supervisor/rendezvous/control_peer.h"

namespace muster {

// Shakes hands with whoever opens a control connection, so that only agents of this run that know
// its token get to the coordinator. Who does not finish in time, is too many, or says something
// wrong, is told why where that helps, and loses its connection; a line about it is said now and
// then. Owned by the CoordinatorHost.
class Doorkeeper {
 public:
  struct Settings {
    std::string run_id;
    std::string token;  // "" for none
    Milliseconds patience{10'000};
    size_t max_strangers = 16'384;
  };
  struct Callbacks {
    // An agent has shown who it is. Its connection has no owner yet.
    std::function<void(std::unique_ptr<ControlPeer>, message::Join)> on_agent;
    std::function<void(const std::string& line)> on_trouble;
  };

  Doorkeeper(Loop& loop, Settings settings, Callbacks callbacks);
  ~Doorkeeper();

  // A connection and what it has sent so far, the preamble included. `read_buffer` outlives this.
  void take(UniqueFd socket, std::string_view bytes, const SocketAddress& address,
            std::span<char> read_buffer);

  // Tells an agent that it is not wanted, and lets it close the connection, so that it reads that.
  void send_off(std::unique_ptr<ControlPeer> peer, const message::Refuse& refuse);

  // Says that a connection was closed for what its peer did.
  void blame(const SocketAddress& address, const std::string& why);

  size_t size() const { return strangers_.size(); }

 private:
  struct Stranger;
  using Place = std::list<Stranger>::iterator;

  Place admit(std::unique_ptr<ControlPeer> peer);
  void greet(Place stranger, const message::Hello& hello);
  void check(Place stranger, message::Join join);
  void refuse(Place stranger, const message::Refuse& refuse);
  void drop(Place stranger, const std::string& why);
  void arm();
  void on_time();

  Loop& loop_;
  const Settings settings_;
  const std::string run_id_;  // as it comes over the wire
  Callbacks callbacks_;
  TroubleLines trouble_;
  std::list<Stranger> strangers_;  // the oldest first
  Owned<Timer> timer_;             // for the oldest
};

}  // namespace muster
