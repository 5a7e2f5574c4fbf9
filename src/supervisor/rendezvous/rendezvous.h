// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "loop/http_exchange.h"
#include "loop/loop.h"
#include "loop/result.h"
#include "supervisor/cli/plan.h"
#include "supervisor/rendezvous/job_link.h"
#include "supervisor/status/rank_sample.h"

namespace muster {

class StoreServer;

// A node's way to the coordinator, whoever that is: finds it (Discovery), hosts it or connects to
// it, notices its loss, comes back to it or, where one can be elected, goes to the next. One node
// alone hosts its own and looks for nobody. Owned by the supervisor's main.
class Rendezvous final : public JobLink {
 public:
  struct Outside {
    JobLink::Callbacks job;
    // For this node's own record: what the coordinator has to tell while it is here (NodeJoined,
    // NodeLost, ...), events of workers on other nodes, trouble of the store.
    std::function<void(EventBody)> on_record;
    // Where the coordinator is elsewhere: a request from its node for this node's HTTP handler, and
    // what was measured of this node's workers, when it is time to tell it. Either may be missing.
    std::function<void(std::unique_ptr<HttpExchange>)> on_request;
    std::function<std::vector<RankSample>()> take_samples;
    // Where it is here: what was measured of workers on other nodes. May be missing.
    std::function<void(int attempt, std::vector<RankSample>)> on_samples;
  };

  // Fails where the job cannot even begin to meet: one node whose store's port is taken, a
  // certificate that cannot be read. `plan` outlives this. An empty facts.id is filled in.
  static Result<std::unique_ptr<Rendezvous>> create(Loop& loop, const LaunchPlan& plan,
                                                    NodeFacts facts, Outside outside);
  ~Rendezvous() override;

  void join() override;
  void failed(const FailureNotice& notice) override;
  void ending(const NodeOutcome& so_far) override;
  void settled(const NodeOutcome& outcome) override;
  void report(const Event& event) override;
  bool request_stop(const event::SignalReceived& signal, bool kill) override;
  std::string request_restart(const std::string& who) override;
  std::string request_evidence(const std::string& why) override;
  void leave() override;
  void close(std::function<void()> on_closed) override;

  // The workers' store while it is here, else null.
  StoreServer* store() const;
  // Whether the coordinator is in this process.
  bool hosting() const;

  // Has the exchange answered by the HTTP handler of the node that had that part (GROUP_RANK) of
  // that attempt (-1: the latest). False: it is this one or not connected, or the coordinator is
  // not here; the exchange was not taken. See Forwarder.
  bool forward(int attempt, int node, std::unique_ptr<HttpExchange>& exchange);

  // Where the coordinator is here: the job stands still for want of this rank, or as a whole (-1),
  // and that ends its attempt as a failure.
  void hung(const event::FailureFound& found);

  // Somebody looks at the samples of other nodes: for some seconds they come more often.
  void watch_samples();

 private:
  struct Impl;
  explicit Rendezvous(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster
