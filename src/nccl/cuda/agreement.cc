// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "nccl/core/backend.h"
#include "nccl/cuda/tables.h"

namespace muster::comm::detail {
namespace {

// What decides how NCCL's ranks speak to each other. Where it differs they do not find together,
// hang, or read what was not meant so. What may differ by node (interfaces, devices, debugging) is
// not here.
constexpr const char* kVariables[] = {
    "NCCL_ALGO",
    "NCCL_BUFFSIZE",
    "NCCL_COLLNET_ENABLE",
    "NCCL_CROSS_NIC",
    "NCCL_CUMEM_ENABLE",
    "NCCL_IB_DISABLE",
    "NCCL_LL128_BUFFSIZE",
    "NCCL_LL_BUFFSIZE",
    "NCCL_MAX_CTAS",
    "NCCL_MAX_NCHANNELS",
    "NCCL_MIN_CTAS",
    "NCCL_MIN_NCHANNELS",
    "NCCL_MNNVL_ENABLE",
    "NCCL_NCHANNELS_PER_NET_PEER",
    "NCCL_NET",
    "NCCL_NTHREADS",
    "NCCL_NVLS_ENABLE",
    "NCCL_P2P_NET_CHUNKSIZE",
    "NCCL_PROTO",
    "NCCL_PXN_DISABLE",
    "NCCL_RUNTIME_CONNECT",
    "NCCL_SHM_DISABLE",
    "NCCL_SOCKET_FAMILY",
};

}  // namespace

std::vector<std::pair<std::string, std::string>> nccl_must_agree() {
  const Result<const NcclTable*> nccl = nccl_table();
  std::vector<std::pair<std::string, std::string>> facts;
  facts.emplace_back("nccl version",
                     nccl ? nccl_version_text((*nccl)->version) : std::string("not found"));
  for (const char* name : kVariables) {
    const char* value = std::getenv(name);
    facts.emplace_back(name, value == nullptr ? "" : value);
  }
  return facts;
}

}  // namespace muster::comm::detail
