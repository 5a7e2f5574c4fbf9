// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "loop/loop.h"
#include "loop/tcp_connector.h"
#include "loop/timer.h"
#include "supervisor/rendezvous/control_stream.h"

namespace muster {

// The way to a coordinator, once: connects to the first of its addresses that answers, shakes hands
// and joins. Dropping it gives up. Owned by whoever looks for the coordinator.
class Approach {
 public:
  struct Target {
    std::vector<std::string> addresses;  // literal, in the order in which to try them
    int port = 0;
  };
  struct Introduction {
    std::string run_id;
    std::string token;  // "" for none
    NodeFacts facts;
  };
  // How far it came; of several addresses the one that came farthest is told.
  enum class Obstacle {
    kUnreachable,  // no way there
    kNoAnswer,     // within the time
    kRefused,      // nobody listens
    kHungUp,       // it was closed in the middle
    kStrange,      // no coordinator, or one that we do not understand or believe
    kTurnedAway,   // the coordinator refuses us, for now
    kFinal,        // and always will
  };
  struct Failure {
    Obstacle obstacle = Obstacle::kUnreachable;
    std::string why;
  };
  struct Joined {
    std::unique_ptr<ControlStream> stream;  // with our callbacks: set others at once
    message::Welcome welcome;
    Target target;  // the one address that it was
  };
  // From the loop; either, once. It may be dropped in them.
  struct Callbacks {
    std::function<void(Joined)> on_joined;
    std::function<void(const Failure&)> on_failed;
  };

  // `patience` is for each address: to connect, and twice for the answers.
  Approach(Loop& loop, Target target, Introduction introduction, Milliseconds patience,
           Callbacks callbacks);

 private:
  void next_address();
  void connected(Result<UniqueFd> socket);
  void on_message(HostMessage message);
  void on_end(const ControlStream::End& end);
  void challenged(const message::Challenge& challenge);
  void failed(Obstacle obstacle, std::string why);
  void remember(Obstacle obstacle, std::string why);
  void tell_failure();

  Loop& loop_;
  const Target target_;
  const Introduction introduction_;
  const Milliseconds patience_;
  Callbacks callbacks_;
  size_t next_ = 0;  // of target_.addresses
  Owned<TcpConnector> connector_;
  std::unique_ptr<ControlStream> stream_;
  Owned<Timer> timer_;
  std::string nonce_;
  int64_t hello_us_ = 0;     // when the hello was sent
  bool challenged_ = false;  // a coordinator is there, so what follows is its doing
  Failure worst_;
  bool tried_ = false;
};

}  // namespace muster
