// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/mpi.h"

#include <cstdint>

#include "supervisor/cli/rendezvous_options.h"
#include "supervisor/cli/values.h"

namespace muster {
namespace {

constexpr int kUsage = 2;

// FNV-1a: mpirun's job ids are random in their upper half only.
int port_for(const std::string& job) {
  uint64_t hash = 0xcbf2'9ce4'8422'2325;
  for (unsigned char c : job)
    hash = (hash ^ c) * 0x100'0000'01b3;
  return kFirstEnginePort + static_cast<int>(hash % kEnginePorts);
}

// The first address of "jobid.0;tcp://10.0.0.1,172.17.0.1:4711;tcp6://[fd00::2]:4712" that other
// machines may reach, else the first; "" if there is none.
std::string address_in_uri(const std::string& uri) {
  std::string fallback;
  for (const std::string& part : split(uri, ';')) {
    const size_t scheme = part.find("://");
    if (scheme == std::string::npos || !part.starts_with("tcp")) continue;
    std::string addresses = part.substr(scheme + 3);
    addresses.resize(std::min(addresses.size(), addresses.rfind(':')));
    for (std::string address : split(addresses, ',')) {
      std::erase(address, '[');
      std::erase(address, ']');
      Result<std::string> host = parse_host(address);
      if (!host) continue;
      if (!is_loopback_host(*host)) return *host;
      if (fallback.empty()) fallback = *host;
    }
  }
  return fallback;
}

struct Ranks {
  int64_t size = 0;
  int64_t rank = 0;
  int64_t local_size = 0;
};

std::optional<Ranks> ranks_of(const Environment& environment, const char* size, const char* rank,
                              const char* local_size) {
  const auto all = lookup_number(environment, size);
  const auto own = lookup_number(environment, rank);
  const auto local = lookup_number(environment, local_size);
  if (!all || !own || !local || *own >= *all || *local > *all || *all > INT32_MAX) {
    return std::nullopt;
  }
  return Ranks{*all, *own, *local};
}

// Several starts on a node: jobs of their own if there is one node, an error otherwise. Nothing if
// there is one a node.
std::optional<Result<EngineFound>> several_starts(const Ranks& ranks, const std::string& advice) {
  if (ranks.local_size < 2) return std::nullopt;
  const std::string times = std::to_string(ranks.local_size) + " times on this node";
  if (ranks.local_size == ranks.size) {
    return EngineFound{{},
                       "mpirun starts muster " + times + ": each is a job of its own (" + advice +
                           " starts it once)"};
  }
  return Error{kUsage, "muster: mpirun starts muster " + times +
                           ", and each would start its own workers: start it once a node (" +
                           advice + ") and say how many workers with --nproc-per-node\n"};
}

}  // namespace

Result<EngineFound> find_open_mpi(const Environment& environment) {
  const auto ranks = ranks_of(environment, "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK",
                              "OMPI_COMM_WORLD_LOCAL_SIZE");
  if (!ranks || ranks->size < 2) return EngineFound{};
  if (auto several = several_starts(*ranks, "mpirun --map-by ppr:1:node")) return *several;
  std::string job = lookup(environment, "PMIX_NAMESPACE").value_or("");
  if (job.empty()) job = lookup(environment, "OMPI_MCA_ess_base_jobid").value_or("");
  Engine engine;
  engine.name = "Open MPI job " + job;
  engine.nodes = static_cast<int>(ranks->size);
  engine.node = static_cast<int>(ranks->rank);
  engine.port = port_for(job);
  engine.run_id = "mpi-" + job;
  // mpirun's own address is the only one that all ranks are told. It is node 0's if rank 0's daemon
  // is mpirun itself, which only rank 0 can see; if it is not, its error ends the others.
  const std::string head = lookup(environment, "OMPI_MCA_orte_hnp_uri").value_or("");
  const std::string daemon = lookup(environment, "OMPI_MCA_orte_local_daemon_uri").value_or("");
  engine.host = address_in_uri(head);
  if (engine.host.empty()) {
    engine.no_host = "this mpirun does not say where rank 0 is";
  } else if (ranks->rank == 0 && daemon != head) {
    engine.host.clear();
    engine.no_host = "rank 0 is not on mpirun's machine, the only one whose address is known";
  }
  return EngineFound{engine, {}};
}

Result<EngineFound> find_hydra(const Environment& environment) {
  const auto ranks = ranks_of(environment, "PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS");
  if (!ranks || ranks->size < 2) return EngineFound{};
  if (auto several = several_starts(*ranks, "mpiexec -ppn 1")) return *several;
  Engine engine;
  engine.name = "MPI job";
  engine.nodes = static_cast<int>(ranks->size);
  engine.node = static_cast<int>(ranks->rank);
  engine.no_host = "this mpiexec does not say where rank 0 is";
  engine.port = kFirstEnginePort;
  return EngineFound{engine, {}};
}

}  // namespace muster
