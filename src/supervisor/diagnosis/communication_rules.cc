// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/rules.h"
#include "supervisor/diagnosis/text_pattern.h"

// Errors of one layer carry the text of the layers below: what says most comes first, so that
// "NCCL error ... Duplicate GPU detected" is about the GPU and "gloo ... Connection closed by peer"
// about the connection. The texts are those of PyTorch 1.13 to 2.14, NCCL 2.10 to 2.28, and gloo.

namespace muster {

namespace {

bool comm_timed_out(const Facts& facts) {
  return facts.error_file && facts.error_file->comm_error == "timeout";
}
bool comm_peer_lost(const Facts& facts) {
  return facts.error_file && facts.error_file->comm_error == "peer_lost";
}
bool comm_mismatched(const Facts& facts) {
  return facts.error_file && facts.error_file->comm_error == "mismatch";
}

constexpr Rule kRules[] = {
    {"duplicate_gpu", "Duplicate GPU detected"},
    {"driver_mismatch", "CUDA driver version is insufficient"},
    {"driver_mismatch", "NVIDIA driver on your system is too old"},
    {"driver_mismatch", "river/library version mismatch"},
    {"driver_mismatch", "unsupported display driver / cuda driver combination"},
    {"driver_mismatch", "forward compatibility was attempted on non supported HW"},
    {"driver_mismatch", "PTX was compiled with an unsupported toolchain"},
    {"too_few_gpus", "invalid device ordinal"},
    {"too_few_gpus", "No CUDA GPUs are available"},
    {"too_few_gpus", "no CUDA-capable device is detected"},
    {"too_few_gpus", "Found no NVIDIA driver on your system"},
    {"too_few_gpus", "No HIP GPUs are available"},
    {"too_few_gpus", "you might not have a CUDA gpu"},
    {"too_few_gpus", "but torch.cuda.device_count() is"},
    {"gpu_fault", "uncorrectable ECC error"},
    {"gpu_fault", "uncorrectable NVLink error"},
    {"gpu_fault", "GPU has fallen off the bus"},
    {"gpu_fault", "GPU is lost"},
    {"cuda_oom", "CUDA out of memory"},
    {"cuda_oom", "HIP out of memory"},
    {"cuda_oom", "^torch.OutOfMemoryError", Reach::kWords},
    {"cuda_oom", "^torch.cuda.OutOfMemoryError", Reach::kWords},
    {"cuda_oom", "CUDA error: out of memory"},
    {"cuda_oom", "Cuda failure*out of memory"},
    {"cuda_oom", "CUBLAS_STATUS_ALLOC_FAILED"},
    {"cuda_oom", "RESOURCE_EXHAUSTED: Out of memory"},

    {"collective_mismatch", "Detected mismatch between collectives on ranks"},
    {"collective_mismatch", "appears not to match sizes of the same param in process"},
    {"collective_mismatch", "op.preamble.length <= op.nbytes"},  // gloo: the peer sent more
    {"collective_mismatch", "", Reach::kWords, Role::kOfKind, comm_mismatched},

    {"nccl_timeout", "Watchdog caught collective operation timeout"},
    {"nccl_timeout", "WorkNCCL(*ran for * milliseconds before timing out"},
    {"nccl_timeout", "watchdog got stuck for * seconds without making progress"},
    {"nccl_timeout", "Heartbeat monitor timed out"},
    {"nccl_timeout", "Some NCCL operations have failed or timed out"},
    {"nccl_timeout", "ncclTimeout"},
    {"nccl_error", "ncclRemoteError", Reach::kNear, Role::kVictim},
    {"nccl_error", "NCCL*remote process exited", Reach::kNear, Role::kVictim},
    {"nccl_error", "NCCL communicator was aborted", Reach::kNear, Role::kVictim},
    {"nccl_error", "NCCL*Connection closed by remote peer", Reach::kNear, Role::kVictim},
    {"nccl_error", "NCCL*Connection re*", Reach::kNear, Role::kVictim},
    {"nccl_error", "socketProgress: Connection closed by remote peer", Reach::kNear, Role::kVictim},
    {"nccl_error", "ncclSystemError"},
    {"nccl_error", "ncclInternalError"},
    {"nccl_error", "ncclInvalid"},
    {"nccl_error", "ncclUnhandledCudaError"},
    {"nccl_error", "NCCL error"},
    {"nccl_error", "NCCL Error"},
    {"nccl_error", "NCCL WARN", Reach::kLast},

    {"cuda_error", "device-side assert triggered"},
    {"cuda_error", "CUDA error"},
    {"cuda_error", "CUDA unknown error"},
    {"cuda_error", "Cuda failure"},
    {"cuda_error", "CUDNN_STATUS_"},
    {"cuda_error", "cuDNN error"},
    {"cuda_error", "CUBLAS_STATUS_"},
    {"cuda_error", "HIP error"},

    // A data loader's process: its end shows as a broken connection to it, too.
    {"data_worker_died", "DataLoader worker (pid*) is killed by signal"},
    {"data_worker_died", "DataLoader worker (pid*) exited unexpectedly"},
    {"data_worker_died", "Pin memory thread exited unexpectedly"},
    {"data_worker_died", "insufficient shared memory (shm)"},

    {"collective_timeout", "Rank # failed to pass monitoredBarrier"},
    {"collective_timeout", "Ranks # failed to pass monitoredBarrier"},
    {"collective_timeout", "successfully reached monitoredBarrier, but received errors"},
    {"collective_timeout", "gloo*Timed out waiting"},
    {"collective_timeout", "gloo*imeout"},
    {"collective_timeout", "Timed out waiting *ms for recv operation to complete"},
    {"collective_timeout", "Timed out waiting *ms for send operation to complete"},
    {"collective_timeout", "Application timeout caused pair closure"},
    {"collective_timeout", "", Reach::kWords, Role::kOfKind, comm_timed_out},
    {"connection_lost", "gloo*Connection "},
    {"connection_lost", "gloo*Broken pipe"},
    {"connection_lost", "gloo*no error", Reach::kWords},  // 1.13 to 2.4: the peer was gone
    {"connection_lost", "", Reach::kWords, Role::kOfKind, comm_peer_lost},
    {"gloo_error", "Gloo connectFullMesh failed"},
    {"gloo_error", "gloo::"},
    {"gloo_error", "/gloo/", Reach::kWords},  // it also writes what is no error
    {"gloo_error", "ProcessGroupGloo", Reach::kWords},

    {"store_timeout", "wait timeout after * keys: "},
    {"store_timeout", "store based barrier"},
    {"store_timeout", "Timed out after * waiting for clients"},
    {"store_timeout", "Timeout waiting for key"},
    {"store_timeout", "^RuntimeError: Socket Timeout", Reach::kWords},
    {"store_timeout", "client socket has timed out after"},
    {"store_timeout", "client socket has failed to connect"},
    {"store_timeout", "DistStoreError", Reach::kWords},
    {"connection_lost", "failed to recv, got 0 bytes"},
    {"connection_lost", "Connection was likely closed. Did the remote server shutdown or crash"},

    {"connection_lost", "muster::comm::*: rank # lost"},
    {"connection_lost", "muster::comm::*: ranks # lost"},
    {"collective_timeout", "muster::comm::*: timeout after "},
};

// Whom a text names, whatever text gave the kind: of PyTorch's desync report and its monitored
// barrier, then of muster's worker library.
constexpr std::string_view kBlames[] = {
    "ranks [#] are the lagging ranks that caused this timeout",
    "[#] joined but didn't finish collective",
    "[#] finished collective #*, but didn't join collective",
    "Rank # failed to pass monitoredBarrier",
    "Ranks # failed to pass monitoredBarrier",
    ": rank # lost",
    ": ranks # lost",
    "nothing is heard of rank #",
    "nothing is heard of ranks #",
    ": rank # of * has not arrived",
    ": ranks # of * have not arrived",
    "but rank # has not said so",
    ": rank # has not come",
    ": ranks # have not come",
    // The last member of a key by which gloo's processes meet is the rank that did not write it.
    "keys: /default_pg/0//cpu//0/#",
};

}  // namespace

std::span<const Rule> communication_rules() {
  return kRules;
}

std::string blamed_ranks(std::string_view line) {
  for (std::string_view pattern : kBlames) {
    if (std::optional<TextMatch> match = match_text(pattern, line)) return match->ranks;
  }
  return "";
}

}  // namespace muster
