// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/make_discovery.h"

#include <utility>

#include "loop/check.h"
#include "supervisor/rendezvous/etcd_discovery.h"
#include "supervisor/rendezvous/file_discovery.h"

namespace muster {

namespace {

EtcdDiscovery::Settings etcd_settings(const LaunchPlan& plan, const NodeFacts& facts,
                                      ListenAt listen) {
  const RendezvousPlan& rendezvous = plan.rendezvous;
  EtcdDiscovery::Settings settings;
  settings.api = rendezvous.meeting;
  settings.endpoint_host = rendezvous.endpoint_host;
  settings.endpoint_port = rendezvous.endpoint_port;
  settings.etcd = rendezvous.etcd;
  settings.run_id = plan.run_id;
  settings.agent_id = facts.id;
  settings.host_name = plan.host;
  settings.local_addr = rendezvous.local_addr;
  settings.read_timeout = rendezvous.read_timeout;
  settings.keep_alive_time = rendezvous.keep_alive_interval * rendezvous.keep_alive_max_attempt;
  settings.listen = std::move(listen);
  return settings;
}

}  // namespace

Result<std::unique_ptr<Discovery>> make_discovery(Loop& loop, const LaunchPlan& plan,
                                                  const NodeFacts& facts, ListenAt listen,
                                                  Discovery::Callbacks callbacks) {
  const RendezvousPlan& rendezvous = plan.rendezvous;
  switch (rendezvous.meeting) {
    case Meeting::kFile:
      return std::unique_ptr<Discovery>(std::make_unique<FileDiscovery>(
          loop, rendezvous, plan.run_id, std::move(listen), std::move(callbacks)));
    case Meeting::kEtcdV2:
    case Meeting::kEtcdV3: {
      auto etcd = EtcdDiscovery::create(loop, etcd_settings(plan, facts, std::move(listen)),
                                        std::move(callbacks));
      if (!etcd) return etcd.error();
      return std::unique_ptr<Discovery>(std::move(*etcd));
    }
    case Meeting::kStandalone:
    case Meeting::kLocal:
    case Meeting::kStatic:
    case Meeting::kDynamic:
      break;
  }
  return std::unique_ptr<Discovery>(std::make_unique<EndpointDiscovery>(
      loop, rendezvous, std::move(listen), std::move(callbacks)));
}

}  // namespace muster
