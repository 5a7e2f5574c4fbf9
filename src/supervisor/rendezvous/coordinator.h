// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "supervisor/rendezvous/round.h"

namespace muster {

struct CoordinatorSettings {
  JobTerms terms;
  std::string host_id;  // the agent in this process; its node stands first where no ranks are given
  std::chrono::milliseconds join_timeout{600'000};  // for MIN nodes to be here, each time anew
  std::chrono::milliseconds last_call{30'000};      // for more than MIN, once MIN are here
  std::chrono::milliseconds grow_every{0};          // a running job grows at most this often
  // Finished nodes go home this long after the first one finished; 0: all wait for all. The host
  // always waits.
  std::chrono::milliseconds exit_barrier{0};
  std::string endpoint_host;     // as this node was told it, "" if it has none (etcd, one node)
  std::string fallback_address;  // an address of this machine, for MASTER_ADDR when nothing better
                                 // is known
  int store_port = 0;            // MASTER_PORT where our store serves the workers
};

// What the coordinator wants done, in order.
namespace action {
struct Refuse {  // and close the connection
  std::string id;
  std::string reason;
  bool final = false;  // no use in trying again (options that differ, a node rank taken)
};
struct Welcome {
  std::string id;
  bool spare = false;
  bool resumed = false;  // its workers are still part of the running attempt; else they must go
};
struct ResetStore {};  // a new attempt: before its first Assign
struct Assign {
  std::string id;
  Assignment assignment;
};
struct Stop {
  std::string id;
  StopOrder order;
};
struct Tell {
  std::string id;
  std::shared_ptr<const AttemptVerdict> verdict;  // one for all: it may be long
};
struct End {  // the agent answers with goodbye
  std::string id;
  JobEnd end;
};
struct Drop {  // close its connection without a word: it was given up
  std::string id;
};
struct SetStopKey {  // "muster/stop_requested" = the signal's name
  std::string signal;
};
struct Record {  // an event for the coordinator's own record
  EventBody event;
};
struct Broadcast {  // who is awaited, for every agent that waits; never more often than
                    // kAwaitedEvery
  event::NodesAwaited awaited;
};
struct Say {  // a line for the coordinator's console, without the "muster: "
  std::string line;
};
struct Closed {};  // everybody has said goodbye: the store may close
}  // namespace action

using Action =
    std::variant<action::Refuse, action::Welcome, action::ResetStore, action::Assign, action::Stop,
                 action::Tell, action::End, action::Drop, action::SetStopKey, action::Record,
                 action::Broadcast, action::Say, action::Closed>;

// The least time between two Broadcasts.
inline constexpr std::chrono::milliseconds kAwaitedEvery{5'000};

// Decides for the whole job: who takes part, which ranks they have, when all stop, who is to blame,
// whether there is another attempt, when the job is over. Pure: events and times in, actions out;
// knows no socket, no loop, no clock. Whoever runs it (CoordinatorHost) carries out the actions in
// their order and forwards what the agents say.
//
//   forming --enough nodes--> running --failure, membership, request, signal--> stopping
//   stopping, running --all settled--> (decides) --> forming | ending --all goodbyes--> closed
//
// What is not obvious (what counts as a cause is in attempt_record.h, who gets which rank in
// ranking.h, what a node may be doing in roster.h):
// - An agent that comes back says in facts.attempt whose verdict it still lacks, workers or not. It
//   is resumed if we still count it or its settled() came; then what it may have missed is said
//   again, and it repeats its own news, which is harmless. Otherwise it ends its workers and says
//   settled(); no attempt begins before that, for two of them would work on the same files.
// - Every settled node is told the verdict, spares too; every node without workers the end. An
//   early verdict goes to the attempt's nodes while they stop.
// - Growth, a loss and a leave use no budget. As many nodes as before need no last call.
// - Once a member's work is done the job grows no more; once such a member was sent home by the
//   exit barrier, no attempt follows.
// - The host cannot be lost or leave: without it there is nobody to decide.
class Coordinator {
 public:
  using Time = std::chrono::steady_clock::time_point;
  enum class Phase { kForming, kRunning, kStopping, kEnding, kClosed };
  enum class Lost { kClosed, kSilent, kLeft };

  Coordinator(CoordinatorSettings settings, Time now);
  // It is a value: a copy goes its own way from here.
  Coordinator(const Coordinator& other);
  ~Coordinator();

  // `seen_address` is the address its connection comes from, `our_address` the one of ours that it
  // reached, both without port; "" for the agent in this process.
  void join(const NodeFacts& facts, const std::string& seen_address, const std::string& our_address,
            Time now);
  void lost(const std::string& id, Lost how, Time now);
  void failed(const std::string& id, const FailureNotice& notice, Time now);
  // The stop there takes long. Once every node has said so or has settled, the root is told, if no
  // later news can change it.
  void ending(const std::string& id, const NodeOutcome& so_far, Time now);
  void settled(const std::string& id, const NodeOutcome& outcome, Time now);
  void stop_requested(const std::string& id, const event::SignalReceived& signal, bool kill,
                      Time now);
  // Somebody wants another attempt instead of the one that runs; it is charged to nobody. The text
  // says why there will be none, "" if the stop has begun.
  std::string restart_requested(const std::string& id, const std::string& who, Time now);
  // The job stands still for want of this rank, or as a whole (rank -1), and that is to be a
  // failure of it. Means nothing unless its attempt runs.
  void hung(const event::FailureFound& found, Time now);
  void goodbye(const std::string& id, Time now);
  void time(Time now);

  // When time() wants to be called next.
  std::optional<Time> wake_at() const;

  std::vector<Action> take_actions();

  Phase phase() const;
  int attempt() const;  // -1 before the first

 private:
  friend struct CoordinatorFingerprint;  // of the test that explores all states
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster
