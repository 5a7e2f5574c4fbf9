// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "supervisor/rendezvous/round.h"

namespace muster {

// A node's way to whoever decides: the coordinator in this process, or the one at the other end of
// a connection. What follows is the same for one node and for ten thousand. Owned by the
// supervisor's main; the job calls it and is called by it.
//
// The course of things, seen from a node:
//   join() -> on_assignment -> workers run -> settled() -> (on_verdict) -> on_assignment | on_end
// A StopOrder may come at any time. When the coordinator is lost for good the link itself orders
// the stop (kCoordinatorLost), and after settled() gives on_end, or a new coordinator's assignment
// where one can be elected.
class JobLink {
 public:
  // All from the loop, never from inside a call of this object.
  struct Callbacks {
    std::function<void(const Assignment&)> on_assignment;
    std::function<void(const StopOrder&)> on_stop;
    std::function<void(const AttemptVerdict&)> on_verdict;
    std::function<void(const JobEnd&)> on_end;
    // This node is to save where its workers are.
    std::function<void(const std::string& why)> on_evidence;
    // A line for the console about the way to the coordinator ("waiting for ...: refused").
    std::function<void(const std::string&)> on_say;
    // Events that this node's own record should have (NodesAwaited, Trouble of the store).
    std::function<void(EventBody)> on_event;
  };
  virtual ~JobLink() = default;

  // Begins to look for the coordinator and joins. Once.
  virtual void join() = 0;

  // A worker failed and this node has begun to stop its others.
  virtual void failed(const FailureNotice& notice) = 0;

  // The stop of a failed attempt takes long: what is known of this node's workers by now. An early
  // verdict may follow; settled() does.
  virtual void ending(const NodeOutcome& so_far) = 0;

  // Nothing of `outcome.attempt` is left on this node.
  virtual void settled(const NodeOutcome& outcome) = 0;

  // What happened to this node's workers, for those who watch the whole job. Kinds that are of no
  // use elsewhere are dropped.
  virtual void report(const Event& event) = 0;

  // Somebody wants the job's end on all nodes: an order to stop (or the end, if nothing runs)
  // follows. False: there is no coordinator to tell now, so the caller stops its own workers.
  virtual bool request_stop(const event::SignalReceived& signal, bool kill) = 0;

  // Somebody wants another attempt instead of the one that runs, charged to nobody: an order to
  // stop follows. The text says why there will be none, "" if it has begun; on another node than
  // the coordinator's it may still be refused, which is then said on the console.
  virtual std::string request_restart(const std::string& who) = 0;

  // Somebody wants to know where the workers of all nodes are: each saves that and records an
  // EvidenceSaved, which those who watch the whole job get too. The text says why it will not come
  // to that, "" if it has been asked for.
  virtual std::string request_evidence(const std::string& why) = 0;

  // This node goes, the job goes on without it. Its workers are stopped by the caller.
  virtual void leave() = 0;

  // After on_end: calls back when everybody who needs this node has said goodbye (the host's store
  // closes last); at once on other nodes.
  virtual void close(std::function<void()> on_closed) = 0;
};

}  // namespace muster
