// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/comm/communicator.h>

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nccl/core/operation.h"
#include "store/store.h"

namespace muster::comm::detail {

constexpr size_t kMaxFacts = 1024;          // of one rank
constexpr size_t kMaxNamedDifferences = 8;  // in one message

// What one rank is made of, as far as the ranks have to agree on it, and the device that no other
// may use ("": none; its first line is for people).
struct Facts {
  std::vector<std::pair<std::string, std::string>> must_agree{};
  std::string device{};

  std::string encode() const;
  // The error says that a rank sent nonsense.
  static Result<Facts> decode(std::string_view bytes);
};

// Whether a communicator with these options is a checked one; the environment says where they do
// not.
bool checked(const CommunicatorOptions& options);

// This process' facts for a communicator of this backend.
Facts own_facts(Backend backend, const CommunicatorOptions& options, int local_rank);

// By rank. kMismatch names each thing that differs, with the values and their ranks, and ranks that
// share a device.
Result<void> compare_facts(std::span<const Facts> facts);

// Compares this rank's with all others' through the store: rank 0 collects them and says the
// result. `store` is for this comparison alone.
Result<void> compare_world(muster::Store& store, const Facts& own, int rank, int size,
                           const std::string& about, Deadline deadline);

}  // namespace muster::comm::detail
