// SPDX-License-Identifier: Apache-2.0
#include "nccl/cuda/trouble.h"

#include "nccl/cuda/causes.h"
#include "nccl/cuda/warnings.h"

namespace muster::comm::detail {
namespace {

// What NCCL has warned of lately, without what the message says already.
std::string quoted(const Warnings& warnings, const std::string& message) {
  std::string text;
  for (const std::string& line : warnings.lines) {
    if (message.find(line) != std::string::npos) continue;
    text += (text.empty() ? "; NCCL warned: " : " | ") + line;
  }
  if (!warnings.file.empty()) text += " (its log: " + warnings.file + ")";
  return text;
}

// The code where the words do not tell it.
ErrorCode code_of(ncclResult_t result) {
  if (result == ncclRemoteError) return ErrorCode::kPeerLost;
  if (result == ncclInvalidArgument) return ErrorCode::kInvalidArgument;
  return ErrorCode::kNccl;
}

}  // namespace

Error nccl_error(ncclResult_t result, const std::string& call) {
  Error error{.code = code_of(result), .message = call, .nccl_result = result};
  const Result<const NcclTable*> nccl = nccl_table();
  if (nccl) {
    error.message += std::string(": ") + (*nccl)->GetErrorString(result);
    const char* last = (*nccl)->GetLastError(nullptr);
    if (last != nullptr && *last != '\0') error.message += std::string(": ") + last;
  }
  while (!error.message.empty() && error.message.back() == '\n')
    error.message.pop_back();
  const Warnings warnings = last_nccl_warnings();
  const std::string also = quoted(warnings, error.message);
  if (const std::optional<Cause> cause = usual_cause(error.message + also)) {
    error.code = cause->code;
    error.message += "; usually: " + std::string(cause->text);
  }
  error.message += also;
  return error;
}

Error cuda_error(cudaError_t cuda_code, const std::string& call) {
  Error error{.code = ErrorCode::kCuda, .message = call, .cuda_error = cuda_code};
  const Result<const CudaTable*> cuda = cuda_table();
  if (cuda) {
    error.message += std::string(": ") + (*cuda)->GetErrorString(cuda_code) + " (" +
                     (*cuda)->GetErrorName(cuda_code) + ")";
  }
  if (const std::optional<Cause> cause = usual_cause(error.message)) {
    error.code = cause->code;
    error.message += "; usually: " + std::string(cause->text);
  }
  return error;
}

Error in_flight_error(Error error) {
  if (error.code == ErrorCode::kInvalidArgument || error.code == ErrorCode::kUnavailable ||
      error.code == ErrorCode::kMismatch) {
    error.code = error.cuda_error != 0 ? ErrorCode::kCuda : ErrorCode::kNccl;
  }
  return error;
}

Error stopped_error(const std::string& call) {
  return Error{.code = ErrorCode::kAborted, .message = call + ": stopped here"};
}

Error late_error(const std::string& call, const std::string& why) {
  return Error{.code = ErrorCode::kTimeout,
               .message = call + ": not done by its deadline" + (why.empty() ? "" : ": " + why)};
}

}  // namespace muster::comm::detail
