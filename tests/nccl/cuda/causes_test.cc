// SPDX-License-Identifier: Apache-2.0
#include "nccl/cuda/causes.h"

#include <doctest/doctest.h>

#include <ostream>
#include <string>

namespace muster::comm::detail {
namespace {

struct Saying {
  const char* said;  // as the libraries word it
  ErrorCode code;
  const char* cause;  // of the line that explains it
};

const Saying kSayings[] = {
    {"init.cc:1234 NCCL WARN Mismatched NCCL version detected : rank 0 version 22809 rank 1 "
     "version "
     "22105",
     ErrorCode::kMismatch, "different versions of NCCL"},
    {"NCCL version mismatch with remote peer 10.0.0.2<41234> (local: 22809, remote 22703)",
     ErrorCode::kMismatch, "different versions of NCCL"},
    {"Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 3b000", ErrorCode::kMismatch,
     "the same GPU"},
    {"Bootstrap Root : mismatch in info from procs, nranks 4 vs 2, nroots 1 vs 1, iroot 0 vs 0",
     ErrorCode::kMismatch, "how many they are"},
    {"NET/Socket : peer 10.0.0.2<40000> message truncated : receiving 8192 bytes instead of 4096. "
     "If "
     "you believe your socket network is in a healthy state, there may be a mismatch in collective "
     "sizes or environment settings (e.g. NCCL_PROTO, NCCL_ALGO) between ranks",
     ErrorCode::kMismatch, "MUSTER_COMM_CHECK=1"},
    {"Cuda failure 'CUDA driver version is insufficient for CUDA runtime version'",
     ErrorCode::kUnavailable, "older than the CUDA runtime"},
    {"Failed to load CUDA driver!", ErrorCode::kUnavailable, "no NVIDIA driver"},
    {"no CUDA-capable device is detected (cudaErrorNoDevice)", ErrorCode::kUnavailable, "no GPU"},
    {"system has unsupported display driver / cuda driver combination "
     "(cudaErrorSystemDriverMismatch)",
     ErrorCode::kUnavailable, "without a reboot"},
    {"no kernel image is available for execution on the device", ErrorCode::kUnavailable,
     "this kind of GPU"},
    {"Cuda failure 700 'an illegal memory access was encountered'", ErrorCode::kCuda,
     "compute-sanitizer"},
    {"uncorrectable ECC error encountered", ErrorCode::kCuda, "Xid"},
    {"Call to ibv_reg_mr failed with error Cannot allocate memory", ErrorCode::kNccl, "ulimit -l"},
    {"Error while creating shared memory segment /dev/shm/nccl-8kYx2q (size 9637888), error: No "
     "space left on device (28)",
     ErrorCode::kNccl, "--shm-size"},
    {"Call to socket failed: Too many open files", ErrorCode::kNccl, "ulimit -n"},
    {"Cuda failure 2 'out of memory'", ErrorCode::kCuda, "memory is full"},
    {"Bootstrap : no socket interface found", ErrorCode::kNccl, "NCCL_SOCKET_IFNAME"},
    {"NCCL cannot be captured in a graph if either it wasn't built with CUDA runtime >= 11.3 or if "
     "the installed CUDA driver < R465.",
     ErrorCode::kNccl, "captured"},
    {"socketPollConnect: connect to 10.0.0.2<29400> returned Connection refused, exceeded error "
     "retry count",
     ErrorCode::kPeerLost, "cannot be reached"},
    {"remote process exited or there was a network error", ErrorCode::kPeerLost,
     "another rank died"},
    {"socketProgress: Connection closed by remote peer node2<51234>", ErrorCode::kPeerLost,
     "another rank died"},
};

}  // namespace

TEST_CASE("what the libraries say is traced to its usual cause") {
  for (const Saying& saying : kSayings) {
    CAPTURE(saying.said);
    const std::optional<Cause> cause = usual_cause(saying.said);
    REQUIRE(cause.has_value());
    CHECK(cause->code == saying.code);
    CHECK(std::string(cause->text).find(saying.cause) != std::string::npos);
    CHECK(cause->text.find('\n') == std::string_view::npos);
  }
}

TEST_CASE("a certain cause wins over a lost connection that it led to") {
  const std::optional<Cause> cause = usual_cause(
      "remote process exited or there was a network error; Duplicate GPU detected : rank 1 and "
      "rank 0 both on CUDA device 3b000");
  REQUIRE(cause.has_value());
  CHECK(cause->code == ErrorCode::kMismatch);
}

TEST_CASE("a text of no known cause gets none") {
  CHECK_FALSE(usual_cause("").has_value());
  CHECK_FALSE(usual_cause("unhandled system error (run with NCCL_DEBUG=INFO for details)"));
  CHECK_FALSE(usual_cause("internal error - please report this issue to the NCCL developers"));
}

}  // namespace muster::comm::detail
