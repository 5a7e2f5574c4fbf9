// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "loop/http_exchange.h"
#include "supervisor/rendezvous/round.h"
#include "supervisor/status/rank_sample.h"

namespace muster {

// This node's agent in conversation with a coordinator that has taken it: one in this process, or
// one at the other end of a connection (RemoteLink). Owned by Rendezvous, which drops it to end the
// conversation at once.
class CoordinatorLine {
 public:
  // All from the loop, never from inside a call of this object.
  struct Callbacks {
    std::function<void(const Assignment&)> on_assignment;
    std::function<void(const StopOrder&)> on_stop;
    std::function<void(const AttemptVerdict&)> on_verdict;
    std::function<void(const JobEnd&)> on_end;
    std::function<void(const std::string& why)> on_evidence;
    std::function<void(const event::NodesAwaited&)> on_awaited;
    // Taken; over a connection, taken again after it was broken. Not resumed: it does not count
    // what still runs here.
    std::function<void(bool spare, bool resumed)> on_welcome;
    // Nothing was heard of it for so long that it will have given this node up: no worker may run
    // any more. It may still come back.
    std::function<void(const std::string& why)> on_cut_off;
    // It is gone for good, or wants us no more; nothing comes after it.
    std::function<void(const std::string& why)> on_lost;
    std::function<void(const std::string& line)> on_say;
    std::function<void(EventBody)> on_event;
    // Of an agent: a request from the coordinator's node for this node's HTTP handler, and what
    // was measured of this node's workers, when it is time to tell. Either may be missing.
    std::function<void(std::unique_ptr<HttpExchange>)> on_request;
    std::function<std::vector<RankSample>()> take_samples;
  };
  virtual ~CoordinatorLine() = default;

  virtual void failed(const FailureNotice& notice) = 0;
  virtual void ending(const NodeOutcome& so_far) = 0;
  virtual void settled(const NodeOutcome& outcome) = 0;
  virtual void report(const Event& event) = 0;
  // False: it cannot be told now.
  virtual bool request_stop(const event::SignalReceived& signal, bool kill) = 0;
  // As JobLink's.
  virtual std::string request_restart(const std::string& who) = 0;
  virtual std::string request_evidence(const std::string& why) = 0;
  // This node goes. No callback comes after it.
  virtual void leave() = 0;
  // Says goodbye and calls back when that has arrived, or cannot; where the coordinator is in this
  // process, when everybody has said it. No other callback comes after it.
  virtual void close(std::function<void()> on_closed) = 0;
};

}  // namespace muster
