// SPDX-License-Identifier: Apache-2.0
#include "making.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <string>

#include "bootstrap.h"
#include "log.h"

namespace doubles {
namespace {

constexpr unsigned kConfigMagic = 0xcafebeef;

// NCCL_HOSTID stands for the host where it is set, as with NCCL.
uint64_t host_hash() {
  const char* id = std::getenv("NCCL_HOSTID");
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return std::hash<std::string>{}(id && *id ? id : name);
}

ncclResult_t check_peers(const ncclComm& comm, const std::vector<PeerInfo>& peers) {
  const PeerInfo& own = peers[static_cast<size_t>(comm.rank)];
  for (int r = 0; r < comm.ranks; ++r) {
    const PeerInfo& peer = peers[static_cast<size_t>(r)];
    if (peer.version != own.version) {
      warn("Mismatched NCCL version detected : rank %d version %d rank %d version %d", r,
           peer.version, comm.rank, own.version);
      return ncclInvalidUsage;
    }
    if (r != comm.rank && peer.host == own.host && peer.bus == own.bus) {
      warn("Duplicate GPU detected : rank %d and rank %d both on CUDA device %x000", comm.rank, r,
           own.bus);
      return ncclInvalidUsage;
    }
  }
  return ncclSuccess;
}

ncclResult_t meet_all(ncclComm& comm) {
  std::vector<int> everybody(static_cast<size_t>(comm.ranks));
  std::iota(everybody.begin(), everybody.end(), 0);
  std::vector<PeerInfo> ignored;
  Outcome outcome =
      comm.links->meet(everybody, comm.meetings++, PeerInfo{}, &ignored, comm.stop_all);
  return result_of(outcome, "while the ranks meet");
}

}  // namespace

ncclResult_t begin_listening(const ncclComm& comm, Fd* listener, PeerInfo* own) {
  std::optional<in_addr> host = interface_address();
  if (!host) {
    warn("Bootstrap : no socket interface found");
    return ncclInvalidUsage;
  }
  char bus[16];
  if (cudaError_t error = cudaDeviceGetPCIBusId(bus, sizeof bus, comm.device)) {
    return cuda_failure(error);
  }
  *listener = listen_at(*host, &own->address);
  own->host = host_hash();
  own->bus = static_cast<int>(std::strtol(bus + sizeof "0000:" - 1, nullptr, 16));
  own->version = library_version();
  return *listener ? ncclSuccess : ncclSystemError;
}

ncclResult_t init_comm(ncclComm& comm, std::span<const ncclUniqueId> ids, Fd listener,
                       const PeerInfo& own) {
  if (comm.rank == 0) say_version();
  std::vector<PeerInfo> peers;
  ncclResult_t result = gather_peers(ids, comm.rank, comm.ranks, own, &peers, comm.stop_all);
  if (result == ncclSuccess) result = check_peers(comm, peers);
  if (result != ncclSuccess) return result;
  comm.links = std::make_unique<Links>(comm.rank, std::move(listener));
  comm.links->set_peers(std::move(peers));
  result = meet_all(comm);
  info("comm %p rank %d nranks %d cudaDev %d - Init %s", static_cast<void*>(&comm), comm.rank,
       comm.ranks, comm.device, result == ncclSuccess ? "COMPLETE" : "FAILED");
  return result;
}

ncclResult_t init_child(ncclComm& parent, const std::vector<int>& members, int turn, int color,
                        int key, ncclComm* child) {
  Fd listener;
  PeerInfo own;
  if (ncclResult_t result = begin_listening(parent, &listener, &own)) return result;
  own.color = color;
  own.key = key;
  std::vector<PeerInfo> infos;
  Outcome outcome = parent.links->meet(members, turn, own, &infos, parent.stop_all);
  if (outcome != Outcome::kDone) return result_of(outcome, "while the parent's ranks meet");
  if (!child) return ncclSuccess;
  std::vector<size_t> group;
  for (size_t i = 0; i < infos.size(); ++i) {
    if (infos[i].color == color) group.push_back(i);
  }
  std::stable_sort(group.begin(), group.end(),
                   [&](size_t a, size_t b) { return infos[a].key < infos[b].key; });
  std::vector<PeerInfo> peers;
  for (size_t i : group) {
    if (members[i] == parent.rank) child->rank = static_cast<int>(peers.size());
    peers.push_back(infos[i]);
  }
  child->ranks = static_cast<int>(peers.size());
  child->links = std::make_unique<Links>(child->rank, std::move(listener));
  child->links->set_peers(std::move(peers));
  return meet_all(*child);
}

ncclResult_t drain(ncclComm& comm) {
  cudaError_t error = wait_for(comm.device, comm.last_kernels());
  return error == cudaSuccess ? ncclSuccess : cuda_failure(error);
}

ncclResult_t apply_config(ncclComm& comm, const ncclConfig_t* config, bool otherwise) {
  comm.blocking = otherwise;
  if (!config) return ncclSuccess;
  if (config->magic != kConfigMagic) {
    warn("ncclConfig_t argument not initialized via NCCL_CONFIG_INITIALIZER");
    return ncclInvalidArgument;
  }
  if (config->blocking == NCCL_CONFIG_UNDEF_INT) return ncclSuccess;
  if (config->blocking != 0 && config->blocking != 1) {
    warn("Invalid config blocking attribute value %d", config->blocking);
    return ncclInvalidArgument;
  }
  comm.blocking = config->blocking == 1;
  return ncclSuccess;
}

}  // namespace doubles
