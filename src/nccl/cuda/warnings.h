// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::comm::detail {

// NCCL prints its warnings and says nothing of them in what its functions return. So that an error
// can quote them, they are sent into a file of this process beside its error file
// (TORCHELASTIC_ERROR_FILE), unless the user has said where and how much with NCCL_DEBUG or
// NCCL_DEBUG_FILE. To be called before NCCL's first call, which reads the environment.
void prepare_nccl_environment();

// How many warnings an error quotes, and how much of the file's end they are looked for in.
constexpr int kQuotedWarnings = 3;
constexpr size_t kWarningBytes = size_t{64} << 10U;

struct Warnings {
  std::string file{};                // "": there is none
  std::vector<std::string> lines{};  // the last ones, without NCCL's prefix
};
// Those since the last time they were asked for: an older one has nothing to do with a new error.
// Any thread.
Warnings new_nccl_warnings();

// NCCL_DEBUG_FILE's pattern: %h is the host, %p the process, %% a percent sign.
std::string expand_debug_file(std::string_view pattern, std::string_view host, int pid);

// "h:12:34 [0] init.cc:99 NCCL WARN text" -> "text", for the last lines that are such.
std::vector<std::string> warnings_in(std::string_view text, int most);

}  // namespace muster::comm::detail
