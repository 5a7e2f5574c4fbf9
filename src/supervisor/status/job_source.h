// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "loop/http_server.h"
#include "store/server.h"
#include "supervisor/job/state.h"
#include "supervisor/status/rank_sample.h"

namespace muster {

// What the HTTP API is about: a job that runs here, or the folder of a run that did. Owned by the
// supervisor's main or by `muster view`; the handlers read it and never own any of it.
class JobSource {
 public:
  virtual ~JobSource() = default;

  virtual const JobState& state() const = 0;
  // How many events the state is made of: the next one's number.
  virtual int64_t next_seq() const = 0;
  // The last events, oldest first, at least kRecentEvents if there were as many.
  static constexpr size_t kRecentEvents = 1'000;
  virtual std::vector<Event> recent_events() const = 0;
  // Called after each event, when the state has it. One at a time; null ends it.
  virtual void set_observer(std::function<void(const Event&)> observer) = 0;

  // False: a finished or killed run that is shown from its files.
  virtual bool live() const = 0;
  // This machine's folder of the run, "" without logs.
  virtual std::string run_dir() const = 0;
  virtual const std::string& host() const = 0;
  // Whether the coordinator is here, so that the state has every node's ranks.
  virtual bool hosting() const = 0;

  // By rank, of the current attempt, as far as they are known; asks for fresher ones while somebody
  // watches.
  virtual std::vector<RankSample> samples() = 0;

  virtual std::vector<StoreWaiter> store_waiters() const = 0;
  virtual std::optional<StoreCounters> store_counters() const = 0;

  // Passes a request on to the muster of the node that was `node` (its GROUP_RANK) in that attempt,
  // which answers it with its own handler. False: that node is this one, or is not connected, and
  // the exchange was not taken.
  virtual bool forward(int attempt, int node, std::unique_ptr<HttpExchange>& exchange) = 0;

  // Requests of the user. The text says why it cannot be done now, "" if it has begun.
  // `who` is for the record: "HTTP from 127.0.0.1".
  virtual std::string stop(const std::string& who, bool kill) = 0;
  virtual std::string restart(const std::string& who) = 0;
  // Has all nodes save where their workers are; `done` is called when they have.
  using OnDumped = std::function<void(const std::vector<event::EvidenceSaved>& saved)>;
  virtual std::string dump(const std::string& who, OnDumped done) = 0;
};

}  // namespace muster
