// SPDX-License-Identifier: Apache-2.0
#include "nccl/cuda/trouble.h"

#include <algorithm>
#include <mutex>
#include <optional>

#include "nccl/cuda/causes.h"
#include "nccl/cuda/warnings.h"

namespace muster::comm::detail {
namespace {

// What NCCL says of an error beyond its result. It keeps one last error for the whole process and
// never forgets it, so what it says may belong to an earlier one.
struct Words {
  std::string last;
  bool told = false;  // the last error reads as it did the time before
  Warnings warnings;  // new ones
};

Words new_words(const NcclTable& nccl) {
  // Never destroyed: threads that outlive main() still ask.
  static std::mutex& mutex = *new std::mutex;
  static std::string& told = *new std::string;
  const std::lock_guard lock(mutex);
  const char* last = nccl.GetLastError(nullptr);
  Words words{.last = last != nullptr ? last : "", .warnings = new_nccl_warnings()};
  while (words.last.ends_with('\n'))
    words.last.pop_back();
  // Each may be cut off.
  const auto same = [&](const std::string& line) {
    return !line.empty() && (words.last.starts_with(line) || line.starts_with(words.last));
  };
  words.told = words.last == told && std::ranges::none_of(words.warnings.lines, same);
  told = words.last;
  return words;
}

// The new warnings, without what the message says already.
std::string quoted(const Warnings& warnings, const std::string& message) {
  std::string text;
  for (const std::string& line : warnings.lines) {
    if (message.find(line) != std::string::npos) continue;
    text += (text.empty() ? "; NCCL warned: " : " | ") + line;
  }
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
  Words words;
  if (const Result<const NcclTable*> nccl = nccl_table()) {
    error.message += std::string(": ") + (*nccl)->GetErrorString(result);
    words = new_words(**nccl);
  }
  // A last error that was told before is another's where its warning is not new in the log. Without
  // a log it may have come again, which only counts where the result explains nothing.
  std::optional<Cause> cause;
  if (words.told) cause = usual_cause(error.message);
  const bool others = words.told && (cause || !words.warnings.file.empty());
  if (!others && !words.last.empty()) error.message += ": " + words.last;
  const std::string warned = quoted(words.warnings, error.message);
  if (!cause) cause = usual_cause(error.message);
  if (!cause) cause = usual_cause(warned);
  if (cause) {
    error.code = cause->code;
    error.message += "; usually: " + std::string(cause->text);
  }
  error.message += warned;
  if (!words.warnings.file.empty()) error.message += " (its log: " + words.warnings.file + ")";
  return error;
}

void forget_nccl_words() {
  if (const Result<const NcclTable*> nccl = nccl_table()) (void)new_words(**nccl);
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
