// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "loop/timer.h"
#include "supervisor/cli/plan.h"
#include "supervisor/rendezvous/coordinator_host.h"
#include "supervisor/rendezvous/coordinator_line.h"
#include "supervisor/rendezvous/discovery.h"

namespace muster {

// The line to the coordinator in this process, which it owns.
class HostLine final : public CoordinatorLine {
 public:
  // Who is told what the coordinator hears of the whole job.
  struct Watchers {
    std::function<void(EventBody)> on_record;
    std::function<void(int attempt, std::vector<RankSample>)> on_samples;  // may be missing
  };

  // `found.store` is null only for one node alone whose workers host their own store.
  HostLine(Loop& loop, const LaunchPlan& plan, const NodeFacts& facts, Discovery::Found found,
           Callbacks callbacks, Watchers watchers);

  void failed(const FailureNotice& notice) override;
  void ending(const NodeOutcome& so_far) override;
  void settled(const NodeOutcome& outcome) override;
  // Everybody who watches the job reads this node's own record.
  void report(const Event&) override {}
  bool request_stop(const event::SignalReceived& signal, bool kill) override;
  std::string request_restart(const std::string& who) override;
  std::string request_evidence(const std::string& why) override;
  // The job cannot go on without the node that hosts it: it is stopped on all, and close() waits
  // until that is done.
  void leave() override;
  void close(std::function<void()> on_closed) override;

  StoreServer* store() const { return host_.store(); }
  CoordinatorHost& host() { return host_; }

 private:
  // By reference, so that the store still tells its port while the settings are made.
  HostLine(Loop& loop, CoordinatorHost::Settings settings, std::unique_ptr<StoreServer>&& store,
           const NodeFacts& facts, Callbacks callbacks, Watchers watchers);
  CoordinatorHost::LocalAgent local_agent();
  void assigned(const Assignment& assignment);
  void ended(const JobEnd& end);
  void settle_unsettled();
  CoordinatorHost::Callbacks host_callbacks(Watchers watchers);

  Loop& loop_;
  Callbacks callbacks_;
  bool ended_ = false;   // JobEnd has come
  bool left_ = false;    // leave() was called
  bool silent_ = false;  // left or closing: nothing is called back any more
  int unsettled_ = -1;   // the attempt that was assigned and is not settled
  std::function<void()> on_closed_;
  Owned<Timer> closing_;
  CoordinatorHost host_;  // last, so that it goes first: it calls the rest
};

}  // namespace muster
