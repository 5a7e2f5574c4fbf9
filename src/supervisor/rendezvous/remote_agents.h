// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "loop/timer.h"
#include "supervisor/rendezvous/control_peer.h"
#include "supervisor/rendezvous/coordinator.h"
#include "supervisor/rendezvous/coordinator_host.h"
#include "supervisor/rendezvous/doorkeeper.h"
#include "supervisor/rendezvous/node_requests.h"
#include "supervisor/rendezvous/silence_watch.h"

namespace muster {

// The agents on other nodes: takes their connections, brings what they say to the coordinator,
// sends them what it answers, and notices when one is gone or silent. Owned by the
// CoordinatorHost.
class RemoteAgents {
 public:
  // Called from inside: they must only take a note.
  struct Outside {
    std::function<void(EventBody)> record;
    std::function<void(std::string line)> say;
    std::function<void(int attempt, std::vector<RankSample>)> samples;  // may be missing
    std::function<void()>
        changed;  // the coordinator was told something, or there is work for later
    std::function<void(const std::string& why)> evidence;  // an agent wants it of all nodes
  };

  // `settings` and `coordinator` outlive this.
  RemoteAgents(Loop& loop, const CoordinatorHost::Settings& settings,
               const CoordinatorHost::Limits& limits, Coordinator& coordinator, Outside outside);
  ~RemoteAgents();

  // A new connection and what was read from it so far.
  void take(UniqueFd socket, std::string_view bytes, const SocketAddress& address);

  // To an agent that is not here any more nothing is sent: the coordinator knows of its end.
  void send(const std::string& id, HostMessage message);
  void send_frame(const std::string& id, std::string_view frame);
  void assign(const std::string& id, const Assignment& assignment);
  void end(const std::string& id, const JobEnd& end);
  void send_all(HostMessage message);
  void refuse(const action::Refuse& refuse);
  void remove(const std::string& id);

  NodeRequests& requests() { return requests_; }
  // Asks all for samples more often, for a while.
  void watch_samples();

  // Whether there is something to do from the loop, and doing it.
  bool has_work() const { return !arrivals_.empty() || !unread_.empty(); }
  void work();

  // Whether a joined agent has this address, without port.
  bool known(const std::string& address) const { return addresses_.contains(address); }
  bool has(const std::string& id) const { return agents_.contains(id); }
  size_t size() const { return agents_.size(); }
  size_t strangers() const { return doorkeeper_.size(); }

 private:
  struct Agent;
  struct Arrival {
    UniqueFd socket;
    std::string bytes;
    SocketAddress address;
  };

  void admit(std::unique_ptr<ControlPeer> peer, const message::Join& join);
  void heartbeat(Agent& agent, const message::Heartbeat& heartbeat);
  void failed(Agent& agent, FailureNotice notice);
  void settled(Agent& agent, NodeOutcome outcome);
  void note_clock(Agent& agent, int64_t offset_us);
  void measured(const Agent& agent, message::Samples samples);
  void restart(const std::string& id, const std::string& who);
  bool answered(const std::string& id, const AgentMessage& message);
  void turn_away(std::unique_ptr<ControlPeer> peer, const message::Refuse& refuse);
  void blame(const Agent& agent, const std::string& why);
  void said_goodbye(const std::string& id);
  void forget(Agent& agent);
  void lose(const std::string& id, Coordinator::Lost how);
  void send_encoded(Agent& agent, std::string_view frame);
  void count_addresses(const Agent& agent, int by);
  void arm_watch();
  void on_silence();
  void on_farewell_time();

  Loop& loop_;
  const CoordinatorHost::Settings& settings_;
  const CoordinatorHost::Limits limits_;
  Coordinator& coordinator_;
  Outside outside_;
  std::unique_ptr<char[]> read_buffer_;  // of all connections
  SilenceWatch watch_;
  Owned<Timer> watch_timer_;
  Clock::time_point watch_at_{};
  SilenceWatch farewells_;  // who has been told the end and owes a goodbye
  Owned<Timer> farewell_timer_;
  Doorkeeper doorkeeper_;
  std::unordered_map<std::string, std::unique_ptr<Agent>> agents_;
  std::unordered_map<std::string, int> addresses_;  // of agents, and how many have each
  std::unordered_set<std::string> skewed_;          // agents whose clock was spoken of
  std::optional<Clock::time_point> watched_;        // when samples were last asked for
  std::vector<Arrival> arrivals_;
  std::vector<std::string> unread_;  // agents that read too little
  NodeRequests requests_;
};

}  // namespace muster
