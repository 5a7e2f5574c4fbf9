// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "loop/loop.h"
#include "loop/result.h"
#include "supervisor/cli/rendezvous_plan.h"
#include "supervisor/rendezvous/discovery.h"

namespace muster {

// The meeting point in etcd: whoever holds the office (a key under a lease) is the coordinator.
// Who finds it vacant opens a store, campaigns, and renews the lease as long as this lives.
class EtcdDiscovery final : public Discovery {
 public:
  struct Settings {
    Meeting api = Meeting::kEtcdV2;  // or kEtcdV3
    std::string endpoint_host;
    int endpoint_port = 2379;
    std::map<std::string, std::string> etcd;  // RendezvousPlan::etcd
    std::string run_id;
    std::string agent_id;
    std::string host_name;
    std::string local_addr;  // --local-addr, "" if not given
    Milliseconds read_timeout{60'000};
    Milliseconds keep_alive_time{3'000};  // of silence until a node is taken for lost
    // Opens the store that a coordinator has; called when this node campaigns.
    std::function<Result<std::unique_ptr<StoreServer>>(const std::string& address, int port)>
        listen;
  };
  // Reads the certificates, so it belongs before the loop runs; an Error names the file.
  static Result<std::unique_ptr<EtcdDiscovery>> create(Loop& loop, Settings settings,
                                                       Callbacks callbacks);
  ~EtcdDiscovery() override;

  void find() override;
  bool can_replace_coordinator() const override { return true; }
  bool resign(const std::function<void()>& on_resigned) override;

  // How long the office stays ours without news from us.
  static Milliseconds lease_for(Milliseconds keep_alive_time);
  // How much earlier than etcd we count the lease as over.
  static Milliseconds margin_of(Milliseconds lease);

  // The office's key for a job.
  static std::string key_for(const Settings& settings);

 private:
  struct Impl;
  explicit EtcdDiscovery(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster
