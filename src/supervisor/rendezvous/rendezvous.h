// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "loop/loop.h"
#include "loop/result.h"
#include "supervisor/cli/plan.h"
#include "supervisor/rendezvous/job_link.h"

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
  };

  // Fails where the job cannot even begin to meet: one node whose store's port is taken, a
  // certificate that cannot be read. `plan` outlives this. An empty facts.id is filled in.
  static Result<std::unique_ptr<Rendezvous>> create(Loop& loop, const LaunchPlan& plan,
                                                    NodeFacts facts, Outside outside);
  ~Rendezvous() override;

  void join() override;
  void failed(const FailureNotice& notice) override;
  void settled(const NodeOutcome& outcome) override;
  void report(const Event& event) override;
  bool request_stop(const event::SignalReceived& signal, bool kill) override;
  void leave() override;
  void close(std::function<void()> on_closed) override;

  // The workers' store while it is here, else null.
  StoreServer* store() const;
  // Whether the coordinator is in this process.
  bool hosting() const;

 private:
  struct Impl;
  explicit Rendezvous(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster
