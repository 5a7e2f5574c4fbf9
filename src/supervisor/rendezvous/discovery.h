// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "loop/result.h"
#include "store/server.h"

namespace muster {

// Answers one question: who is the coordinator, and where? One implementation for each kind of
// meeting point: a fixed endpoint (c10d, static), a shared file, etcd (an election with a lease).
class Discovery {
 public:
  struct Found {
    // Set: it is us, and this store already listens where the others will come to.
    std::unique_ptr<StoreServer> store;
    // Where to connect to otherwise: literal addresses in the order in which to try them.
    std::vector<std::string> addresses;
    int port = 0;
    // The meeting point's host as the user wrote it, or the address that the elected one published.
    std::string host;
  };
  // All from the loop, never from inside a call.
  struct Callbacks {
    std::function<void(Found)> on_found;
    // What it is at, whenever that changes: "resolve node-a: name not known". The link says it.
    std::function<void(const std::string& step)> on_step;
    // No use in going on (the bind address is not ours and is_host is true, etcd refuses us).
    std::function<void(const Error&)> on_failed;
    // Only where coordinators are elected: the lease of our own office is lost.
    std::function<void(const std::string& why)> on_deposed;
  };
  virtual ~Discovery() = default;

  // Looks (again). Goes on until it finds or fails; the caller bounds the time and drops it, or
  // calls this again when what was found turned out to be of no use.
  virtual void find() = 0;

  // Whether another node may take the place of a lost coordinator (elections). Otherwise its loss
  // ends the job on every node.
  virtual bool can_replace_coordinator() const = 0;

  // The job is over: gives up what was won in an election, so that the next job with the same run
  // id need not wait for the lease to end. True: calls back from the loop, within a second; then
  // drop this. False: there is nothing to give up, and nothing is called.
  virtual bool resign(const std::function<void()>& /*on_resigned*/) { return false; }
};

}  // namespace muster
