// SPDX-License-Identifier: Apache-2.0
#include "nccl/cuda/causes.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string>

namespace muster::comm::detail {
namespace {

struct Rule {
  // One of them is in what was said, in lower case.
  std::initializer_list<std::string_view> patterns;
  Cause cause;
};

// The first that fits is the answer: causes that are certain come before those that are often only
// a consequence, such as a lost connection.
const Rule kRules[] = {
    {{"mismatched nccl version", "nccl version mismatch"},
     {ErrorCode::kMismatch, "the ranks run different versions of NCCL; give all of them the same"}},
    {{"duplicate gpu detected"},
     {ErrorCode::kMismatch,
      "two ranks were given the same GPU; give each its own (LOCAL_RANK, CUDA_VISIBLE_DEVICES, "
      "options.device) or start fewer processes per node"}},
    {{"mismatch in info from procs"},
     {ErrorCode::kMismatch, "the ranks do not agree on how many they are"}},
    {{"mismatch in collective sizes", "message truncated"},
     {ErrorCode::kMismatch,
      "the ranks called operations of different sizes or types, or their NCCL_PROTO or NCCL_ALGO "
      "differ; MUSTER_COMM_CHECK=1 names the call"}},
    {{"driver version is insufficient", "insufficient driver", "callrequiresnewerdriver",
      "newer driver"},
     {ErrorCode::kUnavailable,
      "there is no NVIDIA driver, or it is older than the CUDA runtime needs"}},
    {{"failed to load cuda driver", "libcuda.so", "no cuda-capable device",
      "driver is a stub library"},
     {ErrorCode::kUnavailable,
      "there is no NVIDIA driver or no GPU that this process may use (in a container: --gpus)"}},
    {{"driver/library version mismatch", "systemdrivermismatch"},
     {ErrorCode::kUnavailable,
      "the driver's kernel module and its libraries differ, as after an update without a reboot"}},
    {{"no kernel image is available", "invalid device function"},
     {ErrorCode::kUnavailable,
      "this NCCL was not built for this kind of GPU; use a newer or an older one"}},
    {{"illegal memory access", "misaligned address", "unspecified launch failure",
      "device-side assert", "illegal instruction", "illegal address"},
     {ErrorCode::kCuda,
      "a kernel of the program, or an operation on memory that is not the device's or was freed, "
      "broke the device for this process; CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer find it"}},
    {{"uncorrectable ecc", "fallen off the bus", "uncorrectable nvlink"},
     {ErrorCode::kCuda, "the GPU is broken: see the kernel's log (Xid) and take it out of use"}},
    {{"ibv_reg_mr", "ibv_create_cq", "ibv_create_qp"},
     {ErrorCode::kNccl,
      "the InfiniBand device may not lock memory; raise the limit (ulimit -l unlimited, in a "
      "container --ulimit memlock=-1)"}},
    {{"/dev/shm", "shared memory segment", "shared memory file", "no space left on device"},
     {ErrorCode::kNccl,
      "/dev/shm is too small or cannot be written; enlarge it (in a container --shm-size=1g or "
      "--ipc=host)"}},
    {{"too many open files"},
     {ErrorCode::kNccl, "the limit for open files is too low; raise it (ulimit -n)"}},
    {{"out of memory", "cudaerrormemoryallocation"},
     {ErrorCode::kCuda,
      "the GPU's memory is full; NCCL needs some of its own for each communicator (see what else "
      "runs there with nvidia-smi)"}},
    {{"no socket interface found", "no interface found"},
     {ErrorCode::kNccl,
      "no network interface fits NCCL_SOCKET_IFNAME or NCCL_SOCKET_FAMILY; `ip addr` lists them"}},
    {{"captured in a graph", "stream is capturing", "capture unsafe"},
     {ErrorCode::kNccl,
      "the stream is being captured into a graph, which this call or this driver cannot"}},
    {{"connection refused", "no route to host", "network is unreachable", "connect timeout",
      "connection timed out"},
     {ErrorCode::kPeerLost,
      "a peer cannot be reached: it has ended, a firewall stands between, or NCCL_SOCKET_IFNAME "
      "chose an interface that the nodes do not share"}},
    {{"remote process exited", "connection closed by remote", "connection reset", "broken pipe",
      "remote process error"},
     {ErrorCode::kPeerLost, "another rank died, or aborted this communicator; see its log"}},
};

}  // namespace

std::optional<Cause> usual_cause(std::string_view said) {
  std::string lower(said);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const Rule& rule : kRules) {
    for (const std::string_view pattern : rule.patterns) {
      if (lower.find(pattern) != std::string::npos) return rule.cause;
    }
  }
  return std::nullopt;
}

}  // namespace muster::comm::detail
