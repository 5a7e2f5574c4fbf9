// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "loop/loop.h"
#include "store/server.h"
#include "supervisor/rendezvous/coordinator.h"
#include "supervisor/rendezvous/node_requests.h"

namespace muster {

// Runs the coordinator: carries out what it decides, and brings it what the agents say. Owns the
// worker store, on whose port the agents' control connections come in, those connections, and the
// time. The agent of this process is called by functions, the others over the wire; for one node
// alone there is no wire. Owned by Rendezvous. Dropping it closes everything at once.
class CoordinatorHost {
 public:
  struct Settings {
    CoordinatorSettings coordinator;  // host_id is the local agent's NodeFacts::id
    std::string run_id;
    std::string token;  // "" for none
    Milliseconds keep_alive_interval{1'000};
    int keep_alive_max_attempt = 3;
    bool store_allow = false;  // the store serves joined nodes and this machine only
  };
  // All from the loop, never from inside a call of this object; it may be dropped in them.
  struct Callbacks {
    // For this node's record: what the coordinator says, what happened to workers elsewhere.
    std::function<void(EventBody)> on_record;
    // What was measured of workers elsewhere, times on our clock; may be missing.
    std::function<void(int attempt, std::vector<RankSample>)> on_samples;
    // A line for this node's console.
    std::function<void(const std::string&)> on_say;
    // Everybody has said goodbye: nothing needs the store any more.
    std::function<void()> on_closed;
  };
  // What the agent in this process is told, after the others have been sent theirs, and before
  // anything that they answer is heard.
  struct LocalAgent {
    std::function<void(bool resumed)> on_welcome;
    std::function<void(const std::string& reason)> on_refused;
    std::function<void(const Assignment&)> on_assignment;
    std::function<void(const StopOrder&)> on_stop;
    std::function<void(const AttemptVerdict&)> on_verdict;
    std::function<void(const JobEnd&)> on_end;
    std::function<void(const std::string& why)> on_evidence;
  };
  struct Limits {
    Milliseconds handshake{10'000};
    Milliseconds goodbye{30'000};   // from the end, when no node runs anything, to the goodbye
    size_t max_strangers = 16'384;  // connections in the handshake; the oldest gives way
    size_t max_unsent = size_t{4} << 20;  // of an agent that does not read
    int max_events_per_worker = 32;       // an agent's in one attempt
  };

  // `store` already listens; it is null only where a single node has none. Control connections are
  // taken from now on.
  CoordinatorHost(Loop& loop, Settings settings, std::unique_ptr<StoreServer> store,
                  LocalAgent local, Callbacks callbacks);
  CoordinatorHost(Loop& loop, Settings settings, std::unique_ptr<StoreServer> store,
                  LocalAgent local, Callbacks callbacks, Limits limits);
  ~CoordinatorHost();
  CoordinatorHost(const CoordinatorHost&) = delete;
  CoordinatorHost& operator=(const CoordinatorHost&) = delete;

  // What the agent in this process says; see JobLink.
  void join(const NodeFacts& facts);
  void failed(const FailureNotice& notice);
  void ending(const NodeOutcome& so_far);
  void settled(const NodeOutcome& outcome);
  void stop_requested(const event::SignalReceived& signal, bool kill);
  std::string restart_requested(const std::string& who);
  void hung(const event::FailureFound& found);
  std::string evidence_requested(const std::string& why);
  void goodbye();

  // The requests to other nodes' HTTP handlers, and who has which part of which attempt.
  NodeRequests& requests();

  // Somebody looks at the samples: for some seconds they come more often.
  void watch_samples();

  // A control connection: what StoreServer hands over, which the constructor asks it for.
  void take(UniqueFd socket, std::string_view bytes, const SocketAddress& peer);

  // Whether the store may serve a client there (StoreServer asks).
  bool allows(const SocketAddress& peer) const;

  StoreServer* store() const;
  bool connected(const std::string& id) const;
  size_t agents() const;     // connected and joined, without the one in this process
  size_t strangers() const;  // connected and still in the handshake

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster
