# SPDX-License-Identifier: Apache-2.0
"""What only a machine with GPUs can produce: programs that say what PyTorch says there."""

import corpus

python = corpus.group("gpu")


def add(title, program, kind, line="", **rest):
    python(title, program, kind, line, language="py", **rest)


SAID = """
class {0}({1}): pass
{0}.__module__ = "{2}"
raise {0}({3!r})
"""


def said(title, kind, type_name, text, module="builtins", line="", **rest):
    base = "RuntimeError" if type_name != "RuntimeError" else "Exception"
    program = SAID.format(type_name, base, module, text)
    add(title, program, kind, line or text.splitlines()[0][:80], **rest)


said(
    "no GPU memory left",
    "cuda_oom",
    "OutOfMemoryError",
    "CUDA out of memory. Tried to allocate 2.50 GiB. GPU 3 has a total capacity of 79.15 GiB of "
    "which 1.12 GiB is free. Process 4242 has 78.02 GiB memory in use. Of the allocated memory "
    "76.30 GiB is allocated by PyTorch, and 512.00 MiB is reserved by PyTorch but unallocated.",
    "torch",
)
said(
    "an assertion on the GPU",
    "cuda_error",
    "RuntimeError",
    "CUDA error: device-side assert triggered\nCUDA kernel errors might be asynchronously reported "
    "at some other API call, so the stacktrace below might be incorrect.\nFor debugging consider "
    "passing CUDA_LAUNCH_BLOCKING=1",
)
said(
    "an illegal address on the GPU",
    "cuda_error",
    "AcceleratorError",
    "CUDA error: an illegal memory access was encountered\nSearch for `cudaErrorIllegalAddress' in "
    "https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html for more information.",
    "torch",
)
said(
    "an error of the GPU's memory",
    "gpu_fault",
    "RuntimeError",
    "CUDA error: uncorrectable ECC error encountered\nCUDA kernel errors might be asynchronously "
    "reported at some other API call, so the stacktrace below might be incorrect.",
)
said(
    "a GPU that is not there",
    "too_few_gpus",
    "RuntimeError",
    "CUDA error: invalid device ordinal\nCUDA kernel errors might be asynchronously reported at "
    "some other API call, so the stacktrace below might be incorrect.",
)
said(
    "an old driver",
    "driver_mismatch",
    "RuntimeError",
    "The NVIDIA driver on your system is too old (found version 11040). Please update your GPU "
    "driver by downloading and installing a new version from the URL: "
    "http://www.nvidia.com/Download/index.aspx",
)
said(
    "two ranks on one GPU",
    "duplicate_gpu",
    "DistBackendError",
    "NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:275, invalid usage (run with "
    "NCCL_DEBUG=WARN for details), NCCL version 2.20.5\nncclInvalidUsage: This usually reflects "
    "invalid usage of NCCL library.\nLast error:\nDuplicate GPU detected : rank 1 and rank 0 both "
    "on CUDA device 50000",
    "torch.distributed",
    "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 50000",
)
said(
    "NCCL finds no way",
    "nccl_error",
    "DistBackendError",
    "NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:2251, unhandled system "
    "error (run with NCCL_DEBUG=INFO for details), NCCL version 2.20.5\nncclSystemError: System "
    "call (e.g. socket, malloc) or external library call failed or device error. \nLast error:\n"
    "Call to connect returned No route to host, retries exhausted",
    "torch.distributed",
    "ncclSystemError: System call",
)
# Its thread ends the process; the lines are those of PyTorch 2.4.
PEER_OF_WATCHDOG = """
import os, time
if os.environ["RANK"] == "0": time.sleep(600)
"""
WATCHDOG = """
import os, sys
what = ("[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=42, "
        "OpType=ALLREDUCE, NumelIn=1048576, NumelOut=1048576, Timeout(ms)=600000) "
        "ran for 600029 milliseconds before timing out.")
print("[rank1]:[E ProcessGroupNCCL.cpp:616]", what, file=sys.stderr)
print("[rank1]:[E ProcessGroupNCCL.cpp:690] Some NCCL operations have failed or timed out. Due to "
      "the asynchronous nature of CUDA kernels, subsequent GPU operations might run on "
      "corrupted/incomplete data.", file=sys.stderr)
print("[rank1]:[E ProcessGroupNCCL.cpp:704] To avoid data inconsistency, we are taking the entire "
      "process down.", file=sys.stderr)
print("terminate called after throwing an instance of 'c10::DistBackendError'", file=sys.stderr)
print("  what():  [PG 0 (default_pg) Rank 1] Process group watchdog thread terminated with "
      "exception:", what, file=sys.stderr, flush=True)
os.abort()
"""
# Of two that are left nobody knows who was waited for; of one it is known.
add(
    "NCCL's watchdog",
    WATCHDOG,
    "nccl_timeout",
    "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=42, OpType=ALLREDUCE",
    waits=True,
    ranks=3,
)
add(
    "NCCL's watchdog, and one peer is left",
    PEER_OF_WATCHDOG + WATCHDOG,
    "hung",
    "rank 1 waited for it in vain: killed by SIGABRT",
    rank=0,
    victims=(1,),
    everyone=True,
)
